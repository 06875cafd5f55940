package limit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/topology"
)

// A master that dies is replaced by the one that the Sentinels name; what was taken before is not forgotten but for its last
// moment. A master that is made a replica is left at once.
func TestSentinel_Failover(t *testing.T) {
	t.Parallel()
	all := topologytest.StartSentinels(t, 1, topologytest.Security{})
	limiters := make([]limiter, 3)
	for i := range limiters {
		limiters[i] = newLimiterOn(t, topology.Sentinel, all.URL, brief, limit.Closed)
	}
	name, passed := uuid.NewString(), 0
	take := func(times int) {
		for n := range times {
			if d, err := limiters[n%3].Take(name, fiftyADay, time.Now()); err == nil && d.Allowed {
				passed++
			}
		}
	}
	take(30)
	s := startStream(t, limiters, map[string][]string{first: {uuid.NewString(), uuid.NewString()}})
	s.awaitDecided(first)
	all.Master.Kill()
	s.awaitPromotion(all, all.Replicas[0], "killed", func() {})
	take(100)
	if passed < 50 || passed > 100 {
		t.Errorf("%d passed, want 50 to one burst more", passed)
	}
	t.Logf("%d passed of a limit of 50", passed)
	mustBeExact(t, limiters, func(string) bool { return true })

	t.Log("the old master comes back, first as a master")
	all.Master.Start()
	asynctest.Eventually(t, "it follows the new one", func() bool { return all.Master.Info("replication", "master_link_status") == "up" })
	s.awaitDecided(first)
	mustBeExact(t, limiters, func(string) bool { return true })

	s.awaitPromotion(all, all.Master, "made a replica", func() {
		// It is refused while there is no good replica, and given up where the machine is too slow for it.
		_ = all.Nodes[0].Client.Do(t.Context(), "SENTINEL", "FAILOVER", "buckets").Err()
	})
	// Until the Sentinels have told the old one, clients that are connected to it may still be given one bucket more.
	asynctest.Eventually(t, "the old one follows", func() bool { return all.Replicas[0].Info("replication", "master_link_status") == "up" })
	s.awaitDecided(first)
	mustBeExact(t, limiters, func(string) bool { return true })
}

// awaitPromotion asks for it until the heir is named, waits until the heir decides, and tells what that cost.
func (s *stream) awaitPromotion(all *topologytest.Sentinels, heir *topologytest.Node, what string, ask func()) {
	s.t.Helper()
	began := time.Now()
	asynctest.Eventually(s.t, "the sentinels name the heir", func() bool {
		named := all.Named() == heir.Address
		if !named {
			ask()
		}
		return named
	})
	named := time.Now()
	calls := func() string { return fmt.Sprint(heir.Info("commandstats", "cmdstat_evalsha")) }
	before := calls()
	asynctest.Eventually(s.t, "the heir decides", func() bool { return calls() != before })
	again := s.awaitDecided(first)
	undecided, _, longest := count(s.since(first, began))
	s.t.Logf("master %s: another named after %s, decided by it %s after the beginning; %d of %d not decided by Redis, the longest took %s",
		what, named.Sub(began), again.Sub(began), undecided, len(s.since(first, began)), longest)
	if late := again.Sub(named); late > 5*time.Second {
		s.t.Errorf("Redis decides %s after the heir was named", late)
	}
}
