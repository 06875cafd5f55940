package limit_test

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/faultproxy"
	"intents.internal/pkg/testkit/freeport"
)

func TestLimiter_Fallback(t *testing.T) {
	t.Parallel()
	nobody := "redis://" + freeport.Address(t) + "/0"
	for name, test := range map[string]struct {
		fallback limit.Fallback
		passed   int
		err      error
	}{
		"local":  {limit.Local, 50, nil},
		"open":   {limit.Open, 60, nil},
		"closed": {limit.Closed, 0, limit.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimiter(t, nobody, 50*time.Millisecond, test.fallback)
			passed := 0
			for range 60 {
				d, err := l.Take("a key", fiftyAMinute, time.Now())
				if !errors.Is(err, test.err) {
					t.Fatalf("error %v, want %v", err, test.err)
				}
				if d.Allowed {
					passed++
				}
			}
			if passed < test.passed || passed > test.passed+1 {
				t.Errorf("%d passed, want %d", passed, test.passed)
			}
			if got := degraded(t, l); got != 1 {
				t.Errorf("intents_gateway_limit_degraded is %v", got)
			}
			if lines := bytes.Count(l.log.Bytes(), []byte("\n")); lines != 1 {
				t.Errorf("%d log lines, want one:\n%s", lines, l.log)
			}
		})
	}
}

func degraded(t *testing.T, l limiter) float64 {
	t.Helper()
	return l.metric(t, "intents_gateway_limit_degraded")
}

// metric is the value of the counter or gauge of this name, with this label's value if one is given.
func (l limiter) metric(t *testing.T, name string, label ...string) float64 {
	t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && (len(label) == 0 || metric.GetLabel()[0].GetValue() == label[0]) {
				return metric.GetGauge().GetValue() + metric.GetCounter().GetValue() // it is one of them
			}
		}
	}
	t.Fatalf("there is no %s %v", name, label)
	return 0
}

func TestLimiter_RedisRecovers(t *testing.T) {
	t.Parallel()
	r := startRedis(t, false)
	l := newLimiter(t, r.URL, 50*time.Millisecond, limit.Local)
	l.take(t, "warm", fiftyAMinute)
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	var slowest time.Duration
	for range 500 {
		began := time.Now()
		l.take(t, uuid.NewString(), fiftyAMinute)
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("slowest decision without Redis: %s", slowest)
	if slowest > time.Second {
		t.Errorf("a decision took %s without Redis", slowest)
	}
	if err := r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := time.Now()
	deadline := again.Add(20 * time.Second)
	for degraded(t, l) != 0 {
		l.take(t, uuid.NewString(), fiftyAMinute)
		if time.Now().After(deadline) {
			t.Fatal("Redis is not used again")
		}
	}
	t.Logf("Redis used again %s after it answered", time.Since(again))
}

// A Redis that takes connections and never answers must cost neither time nor a flood of dials.
func TestLimiter_RedisHangs_Dials(t *testing.T) {
	t.Parallel()
	redis := faultproxy.Silent(t)
	l := newLimiter(t, "redis://"+redis.Address, 50*time.Millisecond, limit.Local)
	began := time.Now()
	slow, requests := 0, 0
	for time.Since(began) < 2*time.Second {
		at := time.Now()
		l.take(t, uuid.NewString(), fiftyAMinute)
		requests++
		if time.Since(at) > 10*time.Millisecond {
			slow++
		}
	}
	t.Logf("%d requests in 2 s, %d of them slow, %d dials", requests, slow, redis.Passed())
	if n := redis.Passed(); n > 20 {
		t.Errorf("%d dials in two seconds, want at most 10 a second", n)
	}
}

// A request that waits behind a batch that fails is decided without Redis at once, not after a budget of its own.
func TestLimiter_RedisHangs_WaitsOnce(t *testing.T) {
	t.Parallel()
	url := "redis://" + faultproxy.Silent(t).Address
	const budget = 3 * time.Second
	l := newLimiter(t, url, budget, limit.Local)
	var longest atomic.Int64
	var load sync.WaitGroup
	for range 2 * 256 { // more than one batch takes
		load.Go(func() {
			began := time.Now()
			l.take(t, uuid.NewString(), fiftyAMinute)
			for waited := int64(time.Since(began)); ; {
				if so := longest.Load(); waited <= so || longest.CompareAndSwap(so, waited) {
					return
				}
			}
		})
	}
	load.Wait()
	t.Logf("the longest of 512 decisions took %s", time.Duration(longest.Load()))
	if waited := time.Duration(longest.Load()); waited > 2*budget-budget/10 {
		t.Errorf("a decision took %s with a budget of %s", waited, budget)
	}
}

func TestFallback_UnmarshalText(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, word := range []string{"local", "open", "closed", "Local", ""} {
		var f limit.Fallback
		err := f.UnmarshalText([]byte(word))
		got[word] = string(f)
		if err != nil {
			got[word] = err.Error()
		}
	}
	want := map[string]string{
		"local": "local", "open": "open", "closed": "closed",
		"Local": `must be local, open or closed, not "Local"`, "": `must be local, open or closed, not ""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
