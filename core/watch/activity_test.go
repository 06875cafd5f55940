package watch_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/core/watch"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/testkit/asynctest"
)

const activityGrace = 2 * time.Hour

// intentOn is an intent between two chains with a deadline.
func intentOn(source, destination caip.ChainID, deadline time.Time) *transfer.Intent {
	intent := &transfer.Intent{Deadline: deadline}
	intent.Source.Account.Chain, intent.Destination.Account.Chain = source, destination
	return intent
}

// activeUntil reads until when each chain is recorded as active.
func activeUntil(t *testing.T, store *rooms.Rooms) map[string]time.Time {
	t.Helper()
	text := pgtest.LookUp[string](t, store, "SELECT coalesce(json_object_agg(chain_id, active_until), '{}')::text FROM chain_activity")
	var all map[string]time.Time
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// run runs an Activity until the test ends, or until stop is called.
func run(t *testing.T, activity *watch.Activity) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { activity.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

func TestActivity(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	var woken atomic.Int64
	activity := watch.NewActivity(store.Intents, activityGrace, func(caip.ChainID) { woken.Add(1) }, slog.New(slog.DiscardHandler))
	stop := run(t, activity)
	deadline := time.Date(2030, time.May, 1, 12, 0, 0, 0, time.UTC)
	until := deadline.Add(activityGrace + time.Hour)
	want := map[string]time.Time{sepolia.String(): until, baseSepolia.String(): until}
	expect := func(why string) {
		t.Helper()
		asynctest.Eventually(t, why, func() bool { return cmp.Equal(want, activeUntil(t, store)) })
	}
	activity.Created(intentOn(sepolia, baseSepolia, deadline))
	expect("both chains are recorded")

	// Later deadlines within the hour cost no statement: what another has recorded would be overwritten.
	pgtest.Exec(t, store, "DELETE FROM chain_activity")
	for minute := range 61 {
		activity.Created(intentOn(sepolia, baseSepolia, deadline.Add(time.Duration(minute)*time.Minute)))
	}
	activity.Created(intentOn(caip.EIP155Chain(1), caip.EIP155Chain(1), deadline))
	want = map[string]time.Time{"eip155:1": until}
	expect("the other chain alone is recorded")

	activity.Created(intentOn(sepolia, sepolia, deadline.Add(61*time.Minute)))
	want[sepolia.String()] = until.Add(61 * time.Minute)
	expect("a deadline over an hour later is recorded")
	asynctest.Eventually(t, "each recorded chain is woken", func() bool { return woken.Load() == 4 })

	stop()
	activity.Created(intentOn(caip.EIP155Chain(10), sepolia, deadline))
	run(t, activity)()
	want["eip155:10"] = until
	expect("what is due at the end is recorded")
}

// Activity is recorded once Postgres takes it.
func TestActivity_Failing(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	var log asynctest.Buffer
	activity := watch.NewActivity(store.Intents, activityGrace, func(caip.ChainID) {}, slog.New(slog.NewTextHandler(&log, nil)))
	run(t, activity)
	pgtest.Exec(t, store, "ALTER TABLE chain_activity RENAME TO renamed")
	activity.Created(intentOn(sepolia, sepolia, time.Now()))
	asynctest.Eventually(t, "the failure is logged", func() bool { return log.String() != "" })
	pgtest.Exec(t, store, "ALTER TABLE renamed RENAME TO chain_activity")
	asynctest.Eventually(t, "the chain is recorded", func() bool { return len(activeUntil(t, store)) == 1 })
}

// BenchmarkActivity is what recording costs a POST whose chains are recorded already, with 64 at once.
func BenchmarkActivity(b *testing.B) {
	activity := watch.NewActivity(nil, activityGrace, nil, slog.New(slog.DiscardHandler))
	intent := intentOn(sepolia, baseSepolia, time.Now())
	activity.Created(intent)
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			activity.Created(intent)
		}
	})
}
