package usage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/usage"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/wire"
)

// core stands in for the other service: it stores reports, or does what fail says before that or after.
type core struct {
	mu      sync.Mutex
	reports []wire.UsageReport
	// before and after are the errors of an attempt that is not stored, and of one that is.
	before, after func(attempt int) error
	attempts      int
	// at are the times of the reports.
	at []time.Time
}

func (c *core) report(ctx context.Context, report wire.UsageReport) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts++
	if c.before != nil {
		if err := c.before(c.attempts); err != nil {
			return err
		}
	}
	c.reports, c.at = append(c.reports, report), append(c.at, time.Now())
	if c.after != nil {
		return c.after(c.attempts)
	}
	return ctx.Err()
}

// stored is what the core holds: each report once, rows added up by "key minute" as accepted, limited and refused.
func (c *core) stored(t *testing.T) map[string][3]int64 {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, sums := map[string]wire.UsageReport{}, map[string][3]int64{}
	for _, report := range c.reports {
		if earlier, again := seen[report.ReportID]; again {
			if diff := cmp.Diff(earlier, report); diff != "" {
				t.Errorf("a report came again with another content: %s", diff)
			}
			continue
		}
		seen[report.ReportID] = report
		rows := map[string]bool{}
		if len(report.Keys) == 0 || len(report.Keys) > wire.MaxUsageRows {
			t.Errorf("a report with %d rows", len(report.Keys))
		}
		for _, row := range report.Keys {
			name := row.KeyID + row.Minute.Format(" 15:04:05.999")
			if rows[name] {
				t.Errorf("%s is in a report twice", name)
			}
			rows[name] = true
			sum := sums[name]
			sums[name] = [3]int64{sum[0] + row.Accepted, sum[1] + row.Limited, sum[2] + row.Refused}
		}
	}
	return sums
}

// mostInASecond is the highest number of reports within one second.
func (c *core) mostInASecond() (most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := 0
	for n, at := range c.at {
		for at.Sub(c.at[first]) >= time.Second {
			first++
		}
		most = max(most, n-first+1)
	}
	return most
}

func (c *core) same(t *testing.T, want map[string][3]int64) {
	t.Helper()
	if diff := cmp.Diff(want, c.stored(t)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

type recorder struct {
	*usage.Recorder
	registry *prometheus.Registry
	log      *bytes.Buffer
}

func newRecorder(c *core, interval time.Duration, backlog int) recorder {
	r := recorder{registry: prometheus.NewRegistry(), log: &bytes.Buffer{}}
	r.Recorder = usage.New(usage.Options{
		Report: c.report, Interval: interval, Backlog: backlog, Log: slog.New(slog.NewTextHandler(r.log, nil)), Metrics: r.registry,
	})
	return r
}

// run runs the recorder until the function that it returns, which waits for the end.
func (r recorder) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

func (r recorder) metric(t *testing.T, name string) float64 {
	t.Helper()
	return metricstest.Values(t, r.registry)[name]
}

func counter(keyID string) *usage.Counter {
	var c usage.Counter
	c.SetKeyID(keyID)
	return &c
}

// Whatever is counted while counters are gathered, replies are lost and attempts fail is stored once, and nothing else.
func TestRecorder_CountsOnce(t *testing.T) {
	t.Parallel()
	c := &core{
		before: func(int) error { return sometimes(errors.New("away")) },
		after:  func(int) error { return sometimes(errors.New("the reply is lost")) },
	}
	r := newRecorder(c, time.Millisecond, 1_000_000)
	stop := r.run()
	const keys, workers, requests = 50, 8, 20_000
	var counters []*usage.Counter
	for n := range 2 * keys { // two for each key, as after a verdict fell out of the cache
		counters = append(counters, counter(fmt.Sprint(n%keys)))
	}
	var want [keys][3]int64
	var mu sync.Mutex
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			var own [keys][3]int64
			for range requests {
				n, kind := rand.IntN(len(counters)), rand.IntN(3)
				r.Count(counters[n], []usage.Kind{usage.Accepted, usage.Limited, usage.Refused}[kind], time.Now())
				own[n%keys][kind]++
			}
			mu.Lock()
			defer mu.Unlock()
			for key := range own {
				for kind, n := range own[key] {
					want[key][kind] += n
				}
			}
		})
	}
	work.Wait()
	c.mu.Lock()
	c.before, c.after = nil, nil // so that the end finds the core there
	c.mu.Unlock()
	stop()

	var got [keys][3]int64
	for name, sums := range c.stored(t) {
		var key int
		if _, err := fmt.Sscan(name, &key); err != nil {
			t.Fatal(err)
		}
		for kind, n := range sums {
			got[key][kind] += n
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	t.Logf("%d attempts, %d reports", c.attempts, len(c.reports))
}

// The last requests of a key must not be left behind where they meet a gathering: nothing would bring them up later.
func TestRecorder_CountDuringGather(t *testing.T) {
	t.Parallel()
	c := &core{}
	r := newRecorder(c, time.Second, 1_000_000)
	const rounds, workers, requests = 3000, 4, 4
	var gathering sync.WaitGroup
	done := make(chan struct{})
	gathering.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				r.Gather()
			}
		}
	})
	for round := range rounds {
		own := counter(fmt.Sprint(round))
		var work sync.WaitGroup
		for range workers {
			work.Go(func() {
				for range requests {
					r.Count(own, usage.Accepted, time.Now())
				}
			})
		}
		work.Wait()
	}
	close(done)
	gathering.Wait()
	r.run()()
	sum := map[string]int64{}
	for name, counts := range c.stored(t) {
		keyID, _, _ := strings.Cut(name, " ")
		sum[keyID] += counts[0]
	}
	for round := range rounds {
		if got := sum[fmt.Sprint(round)]; got != workers*requests {
			t.Errorf("round %d: %d counted, want %d", round, got, workers*requests)
		}
	}
}

// sometimes is the error in one case of four.
func sometimes(err error) error {
	if rand.IntN(4) == 0 {
		return err
	}
	return nil
}
