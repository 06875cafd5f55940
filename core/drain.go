package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
)

// drain is how core ends without failing a request: for a while it says that it will, so that gateways turn to another
// core, and makes every answer the last of its connection. Only then no more connections are taken.
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
