package gateways

import (
	"context"
	"net/http"
	"time"

	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// readyTimeout bounds a readiness check; gateways treat a slower core as down.
const readyTimeout = 300 * time.Millisecond

var errNotReady = route.Unavailable("This core cannot work now, or is about to end; ask another one.")

// getReady answers the gateways' GET /internal/ready, which they call several times a second: 204, or 503 while the database does
// not respond or core is draining. It is neither logged nor measured.
func (s *Server) getReady(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if s.Ready(ctx) != nil {
		route.WriteError(w, r, errNotReady)
		return
	}
	route.ForbidCaching(w.Header())
	w.Header().Set(wire.HeaderBatch, wire.BatchVersion)
	w.WriteHeader(http.StatusNoContent)
}
