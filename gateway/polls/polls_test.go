package polls_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"intents.internal/gateway/control"
	"intents.internal/gateway/coretest"
	"intents.internal/gateway/polls"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the polls of a replica before the core until the test ends.
func start(t *testing.T, core *coretest.Core, most int) (*polls.Polls, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	client := control.New(coretest.Upstream(t, coretest.Options(core.URL)))
	p := polls.New(polls.Options{Core: client, Max: most, Log: slog.New(slog.DiscardHandler), Metrics: registry})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	asynctest.Eventually(t, "it follows core", func() bool { return value(t, registry, "intents_gateway_wakeup_gaps_total") == 1 })
	return p, registry
}

func value(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	return metricstest.Values(t, registry)[name]
}

func acquire(t *testing.T, p *polls.Polls, key, account string, env network.Environment) *polls.Poll {
	t.Helper()
	poll, err := p.Acquire(key, account, env)
	if err != nil {
		t.Fatal(err)
	}
	return poll
}

func TestPolls_Bounds(t *testing.T) {
	t.Parallel()
	p, registry := start(t, coretest.Start(t, nil), polls.MaxPerAccount+1)
	var all []*polls.Poll
	for n := range polls.MaxPerAccount {
		all = append(all, acquire(t, p, fmt.Sprint("key", n/polls.MaxPerKey), "one", network.Test))
	}
	mustRefuse := func(key, account string, want error) {
		t.Helper()
		if _, err := p.Acquire(key, account, network.Test); !errors.Is(err, want) {
			t.Errorf("%s of %s: %v, want %v", key, account, err, want)
		}
	}
	mustRefuse("key0", "one", polls.ErrTooManyOfKey)
	mustRefuse("other", "one", polls.ErrTooManyOfAccount)
	all = append(all, acquire(t, p, "key", "two", network.Live))
	mustRefuse("key", "two", polls.ErrTooMany)
	all[0].Release()
	mustRefuse("key1", "one", polls.ErrTooManyOfKey)
	all[0] = acquire(t, p, "key0", "one", network.Live)
	for _, poll := range all {
		poll.Release()
	}
	if open, limit := value(t, registry, "intents_gateway_long_polls"), value(t, registry, "intents_gateway_long_polls_limit"); open != 0 || limit != 9 {
		t.Errorf("%g of %g polls", open, limit)
	}
}

func TestPolls_News(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	p, _ := start(t, core, 10)
	one, also := acquire(t, p, "a", "one", network.Test), acquire(t, p, "b", "one", network.Test)
	live, other := acquire(t, p, "c", "one", network.Live), acquire(t, p, "d", "two", network.Test)
	core.Events.Add("one", network.Test, "a")
	<-one.News()
	<-also.News()
	core.Events.Add("two", network.Test, "a")
	<-other.News()
	core.Events.Add("one", network.Live, "a")
	<-live.News()
	for name, poll := range map[string]*polls.Poll{"one": one, "also": also, "live": live, "other": other} {
		select {
		case <-poll.News():
			t.Errorf("%s was woken twice", name)
		default:
		}
		poll.Release()
	}
}

// Core is not asked while there is no poll. The first one hears of what came meanwhile.
func TestPolls_Pause(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	p, _ := start(t, core, 10)
	core.Events.Add("one", network.Test, "a")
	poll := acquire(t, p, "a", "one", network.Test)
	defer poll.Release()
	<-poll.News()
	if asked := core.Events.WakeUps.Load(); asked > 3 { // for the position, for what came meanwhile, and for what comes next
		t.Errorf("core was asked %d times", asked)
	}
}

// However the wake-ups break off, what came meanwhile is told.
func TestPolls_Interrupted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		comeBack  func(*coretest.Events)
		wakesBoth bool
	}{
		"core remembers":   {func(*coretest.Events) {}, false},
		"core has forgot":  {(*coretest.Events).Forget, true},
		"and breaks again": {func(e *coretest.Events) { e.Forget(); e.Down.Store(false); e.Forget() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := coretest.Start(t, nil)
			p, registry := start(t, core, 10)
			one, other := acquire(t, p, "a", "one", network.Test), acquire(t, p, "b", "two", network.Test)
			defer one.Release()
			defer other.Release()
			core.Events.Down.Store(true)
			core.CloseConnections()
			asynctest.Eventually(t, "it is noticed", func() bool { return value(t, registry, "intents_gateway_wakeup_failures_total") != 0 })
			core.Events.Add("one", network.Test, "a")
			test.comeBack(&core.Events)
			core.Events.Down.Store(false)
			<-one.News()
			if test.wakesBoth {
				<-other.News()
			}
		})
	}
}

func TestPolls_Drain(t *testing.T) {
	t.Parallel()
	p, _ := start(t, coretest.Start(t, nil), 10)
	select {
	case <-p.Draining():
		t.Error("it drains before it is told to")
	default:
	}
	p.Drain()
	p.Drain()
	<-p.Draining()
}
