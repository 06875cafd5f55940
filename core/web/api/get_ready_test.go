package api_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/testkit/retrytest"
)

func TestGetReady(t *testing.T) {
	t.Parallel()
	var broken, hanging atomic.Bool
	s := start(t, func(c *settings) {
		c.api.Ready = func(ctx context.Context) error {
			if hanging.Load() {
				<-ctx.Done()
			}
			if broken.Load() {
				return errors.New("broken")
			}
			return ctx.Err()
		}
	})
	if diff := cmp.Diff(answer{Status: http.StatusNoContent, Header: map[string]string{"X-Batch": "3", "Cache-Control": "no-store"}}, s.call(t, "GET", "/internal/ready", "")); diff != "" {
		t.Error(diff)
	}
	unready := refused(t, http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE",
		"This core cannot work now, or is about to end; ask another one.", "Retry-After", "1")
	broken.Store(true)
	same(t, "broken", unready, s.call(t, "GET", "/internal/ready", ""))
	retrytest.HasJitter(t, func() string { return s.call(t, "GET", "/internal/ready", "").Header["Retry-After"] })
	broken.Store(false)
	hanging.Store(true)
	began := time.Now()
	same(t, "hanging", unready, s.call(t, "GET", "/internal/ready", ""))
	if took := time.Since(began); took > 5*time.Second { // 300 ms, and what a busy machine adds
		t.Errorf("an answer to a probe took %s", took)
	}
	if log := s.log.String(); log != "" {
		t.Errorf("probes are logged:\n%s", log)
	}
}
