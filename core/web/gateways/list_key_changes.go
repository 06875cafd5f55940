package gateways

import (
	"net/http"
	"time"

	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// longestWait bounds a long poll: gateways treat their cached keys as stale if no poll has returned for a second.
const longestWait = 500 * time.Millisecond

// listKeyChanges answers the gateways' long poll GET /internal/key-changes?after=&wait=: at once if a key changed since
// the cursor, otherwise when one does or the wait is over.
func (s *Server) listKeyChanges(w http.ResponseWriter, r *http.Request) error {
	parameters, err := route.Query(r, "after", "wait")
	if err != nil {
		return err
	}
	wait := longestWait
	if given, ok := parameters["wait"]; ok {
		if wait, err = time.ParseDuration(given); err != nil || wait < 0 || wait > longestWait {
			return route.Invalid(wire.Issue{Path: "wait", Message: "must be a duration up to 500ms"})
		}
	}
	hashes, next, err := s.keys.after(r.Context(), parameters["after"], wait)
	if err != nil {
		return err
	}
	if hashes == nil {
		hashes = []string{}
	}
	return route.WriteJSON(w, http.StatusOK, wire.KeyChanges{Cursor: next, Hashes: hashes})
}
