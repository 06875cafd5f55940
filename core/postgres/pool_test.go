package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/metricstest"
)

func TestOpen_PoolTimeouts(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	store, err := rooms.Open(pgtest.Database(t), postgres.Options{
		MaxConnections: 1, AcquireTimeout: 200 * time.Millisecond, Metrics: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	pgtest.Begin(t, store)

	left, leave := context.WithTimeout(t.Context(), time.Millisecond)
	defer leave()
	for _, step := range []struct {
		name string
		ctx  context.Context
		want float64
	}{
		{"the caller left before the timeout", left, 0},
		{"the timeout has passed", t.Context(), 1},
	} {
		if err := use(step.ctx, store); !postgres.Unavailable(err) {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := metricstest.Values(t, registry)["intents_core_pool_timeouts_total postgres"]; got != step.want {
			t.Errorf("%s: %g timeouts are counted, want %g", step.name, got, step.want)
		}
	}
}
