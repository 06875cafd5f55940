package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
)

// drain ends core without failing a request. While it is announced, readiness fails, so that gateways use another core, and each
// response closes its connection. Then core accepts no more connections.
type drain struct{ announced atomic.Bool }

func (d *drain) announce() { d.announced.Store(true) }

// check is a readiness check, which fails once the drain is announced.
func (d *drain) check(context.Context) error {
	if d.announced.Load() {
		return errors.New("shutting down")
	}
	return nil
}

func (d *drain) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.announced.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
