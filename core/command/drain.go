package command

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
)

// drain shuts core down without a failed request. Once announced, the readiness check fails, so that gateways use another core,
// and every response closes its connection. The listener closes after CORE_DRAIN_DELAY.
type drain struct{ announced atomic.Bool }

func (d *drain) announce() { d.announced.Store(true) }

// check is a readiness check, which fails once the drain is announced.
func (d *drain) check(context.Context) error {
	if d.announced.Load() {
		return errors.New("shutting down")
	}
	return nil
}

// closing adds Connection: close to the responses of next once the drain is announced.
func (d *drain) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.announced.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
