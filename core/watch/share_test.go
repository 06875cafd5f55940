package watch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"intents.internal/core/pgtest"
	"intents.internal/core/watch"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/testkit/asynctest"
)

// Every process has a share, and when one goes only its chains move.
func TestOwner(t *testing.T) {
	t.Parallel()
	held := map[string]int{}
	for n := range uint64(300) {
		id := caip.EIP155Chain(n + 1)
		owner := watch.Owner(id, "a", "b", "c")
		held[owner]++
		if without := watch.Owner(id, "a", "b"); owner != "c" && without != owner {
			t.Errorf("%s moves from %s to %s when c goes", id, owner, without)
		}
	}
	for _, h := range []string{"a", "b", "c"} {
		if held[h] < 70 || held[h] > 130 {
			t.Errorf("300 chains are held by %v", held)
		}
	}
}

// Chains are handed over to a process that comes, and taken over from one that goes. A stand-in waits for no lock.
func TestWatcher_Share(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	pgtest.Exec(t, w.store, "UPDATE watched_chains SET lease_until = '-infinity'")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	first := w.watcher
	for { // until each of the two has one chain
		w.connect()
		if watch.Owner(sepolia, first.Holder(), w.watcher.Holder()) != watch.Owner(baseSepolia, first.Holder(), w.watcher.Holder()) {
			break
		}
	}
	second := w.watcher
	moved, stays := sepolia, baseSepolia
	if watch.Owner(sepolia, first.Holder(), second.Holder()) == first.Holder() {
		moved, stays = stays, moved
	}
	want := func(step string, ofMoved, ofStays *watch.Watcher) {
		t.Helper()
		for id, holder := range map[caip.ChainID]*watch.Watcher{moved: ofMoved, stays: ofStays} {
			if got := pgtest.LookUp[string](t, w.store, fmt.Sprintf("SELECT holder FROM watched_chains WHERE chain_id = '%s' AND lease_until > now()", id)); got != holder.Holder() {
				t.Errorf("%s: %s is held by another", step, id)
			}
		}
	}
	first.Share(ctx, &running)
	want("one alone", first, first)
	second.Share(ctx, &running)
	want("another comes", first, first)
	first.Share(ctx, &running)
	asynctest.Eventually(t, "the lease is released", func() bool {
		return pgtest.LookUp[bool](t, w.store, fmt.Sprintf("SELECT lease_until <= now() FROM watched_chains WHERE chain_id = '%s'", moved))
	})
	lock := pgtest.Lock(t, w.store, fmt.Sprintf("SELECT FROM watched_chains WHERE chain_id = '%s' FOR UPDATE", moved))
	began := time.Now()
	second.Share(ctx, &running)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("waits %v for a lock", took)
	}
	pgtest.Must(t, lock.Rollback())
	first.Share(ctx, &running) // it is another's, and that one has had the time of a lease to take it
	second.Share(ctx, &running)
	want("handed over", second, first)
	pgtest.Exec(t, w.store, "DELETE FROM watchers WHERE holder = $1", second.Holder())
	pgtest.Exec(t, w.store, fmt.Sprintf("UPDATE watched_chains SET lease_until = now() - interval '1 s' WHERE chain_id = '%s'", moved))
	asynctest.Eventually(t, "one goes: the other takes its chain, though a poll of the former holder may have locked it", func() bool {
		first.Share(ctx, &running)
		return pgtest.LookUp[int](t, w.store, "SELECT count(*) FROM watched_chains WHERE holder = $1 AND lease_until > now()", first.Holder()) == 2
	})
	want("one goes", first, first)
}
