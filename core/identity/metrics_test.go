package identity_test

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/pkg/topology"
)

// A password whose turn does not come is seen waiting, and counted when it is refused.
func TestMetrics_Passwords(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	core := newService(t, func(c *identity.Config) {
		c.Metrics, c.Passwords = registry, &account.Passwords{} // it has no turn to give
	})
	refused := make(chan error, 1)
	go func() {
		_, err := core.SignIn(t.Context(), identity.Client{}, "ann@example.com", password)
		refused <- err
	}()
	var err error
	waited := false
	for left := false; !left; {
		select {
		case err = <-refused:
			left = true
		case <-time.After(5 * time.Millisecond):
			waited = waited || counters(t, registry)["intents_core_passwords_waiting"] == 1
		}
	}
	if !errors.Is(err, identity.ErrBusy) || !waited {
		t.Errorf("%v, seen waiting: %v; want ErrBusy after a wait", err, waited)
	}
	got := counters(t, registry)
	if got["intents_core_passwords_waiting"] != 0 || got["intents_core_passwords_refused_total"] != 1 || got["intents_core_password_duration_seconds"] != 1 {
		t.Errorf("counted %v", got)
	}
}

func TestMetrics_RedisPool(t *testing.T) {
	t.Parallel()
	client, err := identity.NewRedis(topology.Single, startRedis(t).URL, generous)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(topology.Pool("core", client))
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	got := counters(t, registry)
	if got["intents_core_pool_connections_limit redis"] != 4 || got["intents_core_pool_connections_open redis"] != 1 || got["intents_core_pool_connections_in_use redis"] != 0 {
		t.Errorf("one idle connection is told as %v", got)
	}
}
