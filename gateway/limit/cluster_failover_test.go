package limit_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/topologytest"
)

// byNode are names of buckets, grouped by the master that has them: those of the first, and those of the others.
func byNode(c *topologytest.Cluster, each int) map[string][]string {
	groups := map[string][]string{}
	for len(groups[first]) < each || len(groups[others]) < each {
		name := uuid.NewString()
		group := others
		if c.Owner(int(limit.Slot(hashOf(name)))) == c.Masters[0] {
			group = first
		}
		if len(groups[group]) < each {
			groups[group] = append(groups[group], name)
		}
	}
	return groups
}

// tripsAfter is more failures in a row than a breaker takes.
const tripsAfter = 5

const (
	first  = "keys on the first node"
	others = "keys on other nodes"
)

// A master that dies costs its own keys the fallback until its replica has taken its place, and other keys nothing.
func TestCluster_MasterDies(t *testing.T) {
	t.Parallel()
	c := topologytest.StartCluster(t, 3, 3, topologytest.Security{})
	limiters := onCluster(t, c, 3, brief, limit.Closed)
	s := startStream(t, limiters, byNode(c, 20))
	s.attend(c.Masters[1])
	s.awaitDecided(first)
	began := s.awaitDecided(others)
	if began.IsZero() {
		t.Fatal("nothing was decided")
	}
	steady := time.Now()
	died := time.Now()
	c.Masters[0].Kill()
	// A node that is down makes Redis neither missing nor, for keys elsewhere, degraded.
	asynctest.Eventually(t, "the node counts as away", func() bool { return degraded(t, limiters[0]) > 0 })
	if share := degraded(t, limiters[0]); share > 0.5 || limiters[0].Ready(t.Context()) != nil {
		t.Errorf("one of three nodes is down: %g away, %v", share, limiters[0].Ready(t.Context()))
	}
	asynctest.Eventually(t, "the replica has taken over", func() bool { return c.Replicas[0].Info("replication", "role") == "master" })
	promoted := time.Now()
	again := s.awaitDecided(first)
	s.end()
	lost := s.since(first, died)
	undecided, slow, longest := count(lost)
	t.Logf("%s: %d of %d were not decided by Redis, %d slow, the longest took %s; replica promoted after %s, decided by it %s later",
		first, undecided, len(lost), slow, longest, promoted.Sub(died), again.Sub(promoted))
	if late := again.Sub(promoted); undecided == 0 || late > 3*time.Second {
		t.Errorf("%d undecided; Redis decides %s after the promotion", undecided, late)
	}
	s.mustBeUntouched(others, steady)
	mustBeExact(t, limiters, func(name string) bool { return c.Owner(int(limit.Slot(hashOf(name)))) == c.Masters[0] })
}

// mustBeExact takes at once from fresh buckets, of those names that are wanted, through all limiters.
func mustBeExact(t *testing.T, limiters []limiter, want func(name string) bool) {
	t.Helper()
	for range 10 {
		name := uuid.NewString()
		for !want(name) {
			name = uuid.NewString()
		}
		var passed atomic.Int64
		var all sync.WaitGroup
		for n := range 120 {
			all.Go(func() {
				if d, err := limiters[n%len(limiters)].Take(name, fiftyADay, time.Now()); err != nil {
					t.Error(err)
				} else if d.Allowed {
					passed.Add(1)
				}
			})
		}
		all.Wait()
		if passed.Load() != 50 {
			t.Errorf("%d passed, want 50", passed.Load())
		}
	}
}

// A node that takes connections and never answers holds up its own keys now and then, and no others.
func TestCluster_NodeHangs(t *testing.T) {
	t.Parallel()
	c := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	limiters := onCluster(t, c, 2, brief, limit.Closed)
	s := startStream(t, limiters, byNode(c, 20))
	s.attend(c.Masters[1])
	s.awaitDecided(first)
	s.awaitDecided(others)
	hung := time.Now()
	c.Masters[0].Pause()
	defer c.Masters[0].Resume()
	asynctest.Eventually(t, "the node counts as away", func() bool { return degraded(t, limiters[0]) > 0 && degraded(t, limiters[1]) > 0 })
	away := time.Now()
	asynctest.Eventually(t, "two seconds are over", func() bool { return time.Since(away) > 2*time.Second })
	undecided, slow, longest := count(s.since(first, away))
	t.Logf("%s: away after %s; then %d not decided by Redis, %d of them slow, the longest took %s", first, away.Sub(hung), undecided, slow, longest)
	if undecided == 0 || slow > undecided/4 || longest > 3*brief {
		t.Errorf("%s wait for a node that hangs", first)
	}
	c.Masters[0].Resume()
	resumed := time.Now()
	t.Logf("decided by it again after %s", s.awaitDecided(first).Sub(resumed))
	s.end()
	s.mustBeUntouched(others, hung)
}

// A slot on its way to a node that hangs does not hold up the other keys of the node that it leaves.
func TestCluster_SlotMigratesToHungNode(t *testing.T) {
	t.Parallel()
	c := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	l := onCluster(t, c, 1, brief, limit.Closed)[0]
	groups := byNode(c, 40)
	moving := groups[first][0]
	slot := int(limit.Slot(hashOf(moving)))
	for _, name := range groups[first] {
		if name != moving {
			l.take(t, name, plenty)
		}
	}
	c.Begin(slot, c.Masters[0], c.Masters[1])
	c.Masters[1].Pause()
	defer c.Masters[1].Resume()
	// The first call is alone, so that nobody tells the node from the slot but by its answer. From then on nobody waits for it.
	for range tripsAfter {
		if d, err := l.Take(moving, plenty, time.Now()); err == nil {
			t.Fatalf("decided by a node that hangs: %+v", d)
		}
	}
	if share := degraded(t, l); share != 0 {
		t.Errorf("%g of the nodes are away, and all that was asked works", share)
	}
	s := startStream(t, []limiter{l}, map[string][]string{first: groups[first][1:]})
	s.attend(c.Masters[0])
	since := time.Now()
	tried := 0
	asynctest.Eventually(t, "two seconds are over", func() bool {
		tried++
		if _, err := l.Take(moving, plenty, time.Now()); err == nil {
			t.Error("decided by a node that hangs")
		}
		return time.Since(since) > 2*time.Second
	})
	s.end()
	t.Logf("the slot that moves was asked for %d times", tried)
	s.mustBeUntouched(first, since)
}

// By the policy local each replica goes on from what Redis said last, and only for keys of the node that died.
func TestCluster_OverAdmissionAfterFailover(t *testing.T) {
	t.Parallel()
	c := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	limiters := onCluster(t, c, 3, brief, limit.Local)
	groups := byNode(c, 10)
	passed := map[string]int{}
	take := func(times int) {
		t.Helper()
		for group, names := range groups {
			for _, name := range names {
				for n := range times {
					if limiters[n%3].take(t, name, fiftyADay).Allowed {
						passed[group]++
					}
				}
			}
		}
	}
	take(30)
	c.Masters[0].Kill()
	take(300)
	want := len(groups[others]) * 50
	t.Logf("limit %d for each; %s: %d passed, %s: %d passed", want, others, passed[others], first, passed[first])
	if most := want + 3*want; passed[others] != want || passed[first] < want || passed[first] > most {
		t.Errorf("want exactly %d elsewhere, and %d to %d of the node that died", want, want, most)
	}
}

// A gateway that starts while a node hangs finds the others, also where the URL names that node alone besides them.
func TestCluster_StartWithHungNode(t *testing.T) {
	t.Parallel()
	c := topologytest.StartCluster(t, 3, 0, topologytest.Security{})
	c.Masters[0].Pause()
	defer c.Masters[0].Resume()
	limiters := onCluster(t, c, 2, 50*time.Millisecond, limit.Closed)
	s := startStream(t, limiters, byNode(c, 20))
	began := time.Now()
	t.Logf("decided after %s", s.awaitDecided(others).Sub(began))
	for _, l := range limiters {
		asynctest.Eventually(t, "a part is away", func() bool { share := degraded(t, l); return share > 0 && share < 1 })
	}
}
