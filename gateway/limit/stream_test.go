package limit_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/topologytest"
)

// brief is a budget that a busy machine keeps where Redis answers, and that shows where it does not.
const brief = 400 * time.Millisecond

// stream is a steady load of several clients on groups of buckets, which are never empty; the limiters are closed without
// Redis, so that every request that Redis has not decided is seen.
type stream struct {
	t        *testing.T
	limiters []limiter
	groups   map[string][]string

	mu      sync.Mutex
	taken   []taken
	passed  map[string]int
	stop    chan struct{}
	clients sync.WaitGroup
}

// taken is one request.
type taken struct {
	group     string
	at        time.Time
	took      time.Duration
	undecided bool
}

func startStream(t *testing.T, limiters []limiter, groups map[string][]string) *stream {
	t.Helper()
	s := &stream{t: t, limiters: limiters, groups: groups, passed: map[string]int{}, stop: make(chan struct{})}
	for n := range 2 * len(limiters) {
		for group, names := range groups {
			s.clients.Go(func() { s.run(limiters[n%len(limiters)], group, names) })
		}
	}
	t.Cleanup(s.end)
	return s
}

func (s *stream) run(l limiter, group string, names []string) {
	pace := time.NewTicker(4 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-s.stop:
			return
		case <-pace.C:
		}
		name, at := names[n%len(names)], time.Now()
		d, err := l.Take(name, plenty, at)
		s.mu.Lock()
		s.taken = append(s.taken, taken{group, at, time.Since(at), err != nil})
		if err == nil && d.Allowed {
			s.passed[name]++
		}
		s.mu.Unlock()
	}
}

// control is the group of what attend asks.
const control = "the machine itself"

// attend asks a node that is well, beside the stream and without a limiter: where even that is slow, no process had a core.
func (s *stream) attend(node *topologytest.Node) {
	s.clients.Go(func() {
		pace := time.NewTicker(4 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-pace.C:
			}
			at := time.Now()
			err := node.Client.Ping(context.WithoutCancel(s.t.Context())).Err()
			s.mu.Lock()
			s.taken = append(s.taken, taken{control, at, time.Since(at), err != nil})
			s.mu.Unlock()
		}
	})
}

// starved tells whether the machine itself made one in a hundred slow.
func (s *stream) starved(since time.Time) bool {
	all := s.since(control, since)
	_, slow, longest := count(all)
	if slow > len(all)/100 {
		s.t.Logf("slowness is not judged: %d of %d bare calls were slow as well, the longest took %s", slow, len(all), longest)
	}
	return slow > len(all)/100
}

func (s *stream) end() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.clients.Wait()
}

// since are a group's requests from then on.
func (s *stream) since(group string, then time.Time) (all []taken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.taken {
		if one.group == group && !one.at.Before(then) {
			all = append(all, one)
		}
	}
	return all
}

// awaitDecided waits until a group has been decided by Redis for a quarter of a second, and tells when that began.
func (s *stream) awaitDecided(group string) (from time.Time) {
	s.t.Helper()
	asynctest.Eventually(s.t, group+" is decided by Redis", func() bool {
		from = time.Time{}
		all := s.since(group, time.Now().Add(-250*time.Millisecond))
		return len(all) >= 20 && !slices.ContainsFunc(all, func(one taken) bool { return one.undecided })
	})
	all := s.since(group, time.Time{})
	for _, one := range slices.Backward(all) {
		if one.undecided {
			return one.at.Add(one.took)
		}
	}
	return all[0].at
}

// undecided is how many of these Redis has not decided, and slow how many took more than half the budget.
func count(all []taken) (undecided, slow int, longest time.Duration) {
	for _, one := range all {
		if one.undecided {
			undecided++
		}
		if one.took > brief/2 {
			slow++
		}
		longest = max(longest, one.took)
	}
	return undecided, slow, longest
}

// mustBeUntouched wants that Redis has decided all of a group's requests, in time, and charged each of them once.
func (s *stream) mustBeUntouched(group string, since time.Time) {
	s.t.Helper()
	all := s.since(group, since)
	undecided, slow, longest := count(all)
	s.t.Logf("%s: %d requests, the longest took %s", group, len(all), longest)
	if undecided != 0 || slow > len(all)/100 && !s.starved(since) {
		s.t.Errorf("%s: %d of %d were not decided by Redis, %d were slow", group, undecided, len(all), slow)
	}
	for _, name := range s.groups[group] {
		if passed, charged := s.passed[name], s.limiters[0].charged(s.t, name, plenty); charged < passed-1 || charged > passed+1 {
			s.t.Errorf("%s: %d passed, %d were charged", group, passed, charged)
		}
	}
}
