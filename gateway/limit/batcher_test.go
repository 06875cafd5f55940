package limit_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/tokenbucket"
)

// fiftyADay gives back nothing while a test runs, so that what passes can be counted to the last request.
var fiftyADay = tokenbucket.Per(50, 24*time.Hour)

// Requests at once share calls, also where they are of different rules.
func TestLimiter_SharesCalls(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, startRedis(t, false).URL, generous, limit.Closed)
	var asked callCounter
	l.redis.AddHook(&asked)
	rules := []tokenbucket.Rule{fiftyADay, tokenbucket.Per(1000, time.Hour)}
	const clients, each = 64, 50
	var passed atomic.Int64
	var load sync.WaitGroup
	for c := range clients {
		load.Go(func() {
			for n := range each {
				rule := rules[0]
				if c == 0 {
					rule = rules[1]
				}
				if l.take(t, fmt.Sprint("client ", c, " request ", n), rule).Allowed {
					passed.Add(1)
				}
			}
		})
	}
	load.Wait()
	calls := asked.calls.Load()
	t.Logf("%d requests in %d calls", clients*each, calls)
	if passed.Load() != clients*each || calls > clients*each/2 {
		t.Errorf("%d of %d requests passed, in %d calls", passed.Load(), clients*each, calls)
	}
}

// A Redis that forgets the script is taught it again within the same decision.
func TestLimiter_ScriptFlushed(t *testing.T) {
	t.Parallel()
	r := startRedis(t, false)
	l, forgetter := newLimiter(t, r.URL, generous, limit.Closed), newLimiter(t, r.URL, generous, limit.Closed)
	var load sync.WaitGroup
	var passed atomic.Int64
	done := make(chan struct{})
	load.Go(func() {
		defer close(done)
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				for range 100 {
					if l.take(t, "a key", fiftyADay).Allowed {
						passed.Add(1)
					}
					l.take(t, uuid.NewString(), fiftyADay)
				}
			})
		}
		clients.Wait()
	})
	for flushes := 0; ; flushes++ {
		select {
		case <-done:
			load.Wait()
			if passed.Load() != 50 || flushes == 0 {
				t.Errorf("%d passed through %d flushes, want 50", passed.Load(), flushes)
			}
			return
		default:
			if err := forgetter.redis.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Connections that are cut cost no request an error, and Redis decides again at once.
func TestLimiter_ConnectionsCut(t *testing.T) {
	t.Parallel()
	r := startRedis(t, false)
	if r.PID() == 0 {
		t.Skip("no redis-server or valkey-server on PATH, and no other can cut connections")
	}
	l := newLimiter(t, r.URL, generous, limit.Local)
	cutter := newLimiter(t, r.URL, generous, limit.Closed)
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					l.take(t, uuid.NewString(), fiftyADay)
				}
			}
		})
	}
	for range 20 {
		if err := cutter.redis.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	load.Wait()
	decided := func() float64 { return l.metric(t, "intents_gateway_limit_decisions_total", "allowed") }
	before, deadline := decided(), time.Now().Add(10*time.Second)
	for decided() == before {
		if time.Now().After(deadline) {
			t.Fatal("Redis does not decide again")
		}
		l.take(t, uuid.NewString(), fiftyADay)
	}
}

// A leader that panics fails the requests that wait behind it, and the next batch runs.
func TestBatcher_LeaderPanics(t *testing.T) {
	t.Parallel()
	const behind = 8
	asking := make(chan struct{})
	var b *limit.Batcher
	var broken atomic.Bool
	b = limit.NewBatcher(func(int) error {
		if broken.Swap(true) {
			return nil
		}
		close(asking)
		for b.Waiting() < behind {
			runtime.Gosched()
		}
		panic("a broken leader")
	})
	var load sync.WaitGroup
	load.Go(func() {
		defer func() {
			if recover() == nil {
				t.Error("the leader's panic is lost")
			}
		}()
		_ = b.Do()
	})
	<-asking
	for range behind {
		load.Go(func() {
			if b.Do() == nil {
				t.Error("a request behind it was decided by nobody")
			}
		})
	}
	load.Wait()
	if err := b.Do(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
