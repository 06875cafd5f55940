package gateways_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/web/webtest"
	"intents.internal/pkg/testkit/retrytest"
)

func TestGetReady(t *testing.T) {
	t.Parallel()
	var broken, hanging atomic.Bool
	s := webtest.Start(t, func(c *webtest.Settings) {
		c.API.Ready = func(ctx context.Context) error {
			if hanging.Load() {
				<-ctx.Done()
			}
			if broken.Load() {
				return errors.New("broken")
			}
			return ctx.Err()
		}
	})
	if diff := cmp.Diff(webtest.Answer{Status: http.StatusNoContent, Header: map[string]string{"X-Batch": "3", "Cache-Control": "no-store"}}, s.Call(t, "GET", "/internal/ready", "")); diff != "" {
		t.Error(diff)
	}
	unready := webtest.Refused(t, http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE",
		"This core cannot work now, or is about to end; ask another one.", "Retry-After", "1")
	broken.Store(true)
	webtest.Same(t, "broken", unready, s.Call(t, "GET", "/internal/ready", ""))
	retrytest.HasJitter(t, func() string { return s.Call(t, "GET", "/internal/ready", "").Header["Retry-After"] })
	broken.Store(false)
	hanging.Store(true)
	began := time.Now()
	webtest.Same(t, "hanging", unready, s.Call(t, "GET", "/internal/ready", ""))
	if took := time.Since(began); took > 5*time.Second { // 300 ms, and what a busy machine adds
		t.Errorf("an answer to a probe took %s", took)
	}
	if log := s.Log.String(); log != "" {
		t.Errorf("probes are logged:\n%s", log)
	}
}
