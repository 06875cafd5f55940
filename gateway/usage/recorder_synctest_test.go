package usage_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"intents.internal/gateway/control"
	"intents.internal/gateway/usage"
)

// A bubble's clock starts at midnight UTC.
func TestRecorder_Minutes(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{time.Second, 5 * time.Second, 7 * time.Second, time.Minute} {
		t.Run(interval.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &core{}
				r := newRecorder(c, interval, 1000)
				a, b := counter("a"), counter("b")
				time.Sleep(58900 * time.Millisecond) // started in the midst of a minute
				stop := r.run()
				r.Count(a, usage.Accepted, time.Now())
				time.Sleep(1099 * time.Millisecond) // 59.999
				r.Count(a, usage.Accepted, time.Now())
				r.Count(b, usage.Refused, time.Now())
				time.Sleep(2 * time.Millisecond) // 1:00.001
				synctest.Wait()
				r.Count(a, usage.Limited, time.Now())
				latest := time.Now()
				time.Sleep(2 * time.Minute)
				r.Count(b, usage.Accepted, time.Now())
				time.Sleep(90 * time.Second)
				stop()
				c.same(t, map[string][3]int64{
					"a 00:00:00": {2, 0, 0}, "b 00:00:00": {0, 0, 1}, "a 00:01:00": {0, 1, 0}, "b 00:03:00": {1, 0, 0},
				})
				for _, report := range c.reports {
					for _, row := range report.Keys {
						if row.Limited == 1 && !row.LastUsedAt.Equal(latest) {
							t.Errorf("last used at %s, want %s", row.LastUsedAt, latest)
						}
					}
				}
			})
		})
	}
}

func TestRecorder_OutageDropsOldest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		c := &core{before: func(int) error { return away }}
		r := newRecorder(c, 5*time.Second, 3)
		stop := r.run()
		a, b := counter("a"), counter("b")
		time.Sleep(time.Second)
		for range 4 * 12 { // four minutes
			r.Count(a, usage.Accepted, time.Now())
			r.Count(b, usage.Limited, time.Now())
			time.Sleep(5 * time.Second)
		}
		synctest.Wait()
		if waiting, dropped := r.metric(t, "intents_gateway_usage_waiting"), r.metric(t, "intents_gateway_usage_dropped_total"); waiting != 3 || dropped == 0 {
			t.Errorf("%v wait, %v dropped", waiting, dropped)
		}
		c.mu.Lock()
		c.before = nil
		c.mu.Unlock()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if waiting := r.metric(t, "intents_gateway_usage_waiting"); waiting != 0 {
			t.Errorf("%v wait after the outage", waiting)
		}
		got := c.stored(t)
		for name, want := range map[string][3]int64{"a 00:03:00": {12, 0, 0}, "b 00:03:00": {0, 12, 0}} {
			if got[name] != want {
				t.Errorf("%s: %v, want %v", name, got[name], want)
			}
		}
		if failed := bytes.Count(r.log.Bytes(), []byte("usage not reported")); failed != 1 {
			t.Errorf("%d log lines about one outage:\n%s", failed, r.log)
		}
		if c.attempts > 100 {
			t.Errorf("%d attempts in four minutes", c.attempts)
		}
		stop()
	})
}

func TestRecorder_ReportRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &core{before: func(attempt int) error {
			if attempt == 1 {
				return fmt.Errorf("report usage: %w", control.ErrReportRefused)
			}
			return nil
		}}
		r := newRecorder(c, time.Second, 1000)
		stop := r.run()
		a := counter("a")
		for range 2 {
			r.Count(a, usage.Accepted, time.Now())
			time.Sleep(10 * time.Second)
		}
		stop()
		c.same(t, map[string][3]int64{"a 00:00:00": {1, 0, 0}})
		if dropped := r.metric(t, "intents_gateway_usage_dropped_total"); dropped != 1 || c.attempts != 2 {
			t.Errorf("%v dropped, %d attempts", dropped, c.attempts)
		}
	})
}

// A few rows are reported once an interval.
func TestRecorder_SeveralReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &core{}
		r := newRecorder(c, time.Second, 10_000)
		stop := r.run()
		want := map[string][3]int64{}
		for n := range 2*200 + 1 {
			r.Count(counter(fmt.Sprint(n)), usage.Accepted, time.Now())
			want[fmt.Sprint(n)+" 00:00:00"] = [3]int64{1, 0, 0}
		}
		time.Sleep(3 * time.Second)
		if most := c.mostInASecond(); most > 1 {
			t.Errorf("%d reports in one second", most)
		}
		time.Sleep(time.Second)
		c.same(t, want)
		stop()
		if len(c.reports) != 3 {
			t.Errorf("%d reports", len(c.reports))
		}
	})
}

// Keys that are used all the time cost core little more than a row a minute each, evenly spread. If the backlog has no room for
// two minutes of all keys, they cost more, but no count is dropped.
func TestRecorder_BusyKeys(t *testing.T) {
	t.Parallel()
	const keys, minutes, tick = 5_000, 3, 5 * time.Second
	for _, c := range []struct {
		backlog int
		rows    float64 // for each key and minute
	}{{200_000, 1.5}, {2 * keys, 12}} {
		t.Run(fmt.Sprint("backlog ", c.backlog), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				stored := &core{}
				r := newRecorder(stored, tick, c.backlog)
				counters, want := make([]*usage.Counter, keys), map[string][3]int64{}
				for n := range counters {
					counters[n] = counter(fmt.Sprint(n))
					for minute := range minutes {
						want[fmt.Sprintf("%d 00:%02d:00", n, minute)] = [3]int64{int64(time.Minute / tick), 0, 0}
					}
				}
				time.Sleep(time.Second)
				stop := r.run()
				for range minutes * time.Minute / tick {
					for _, counter := range counters {
						r.Count(counter, usage.Accepted, time.Now())
					}
					time.Sleep(tick)
				}
				time.Sleep(time.Minute)
				stored.same(t, want)
				stop()
				rows := 0
				for _, report := range stored.reports {
					rows += len(report.Keys)
				}
				each := float64(rows) / keys / minutes
				t.Logf("%.2f rows for each key and minute, in %d reports", each, len(stored.reports))
				if dropped := r.metric(t, "intents_gateway_usage_dropped_total"); each > c.rows || dropped > 0 {
					t.Errorf("want at most %.2f, and none dropped, not %v", c.rows, dropped)
				}
				if most := stored.mostInASecond(); c.rows < 2 && most > 2 {
					t.Errorf("%d reports in one second", most)
				}
			})
		})
	}
}

// The end reports what is left, a report whose reply was lost included, and does not wait for a core that is away.
func TestRecorder_LastFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &core{after: func(attempt int) error {
			if attempt < 3 {
				return errors.New("the reply is lost")
			}
			return nil
		}}
		r := newRecorder(c, 5*time.Second, 1000)
		stop := r.run()
		r.Count(counter("a"), usage.Accepted, time.Now())
		time.Sleep(6300 * time.Millisecond)
		r.Count(counter("b"), usage.Accepted, time.Now())
		stop()
		c.same(t, map[string][3]int64{"a 00:00:00": {1, 0, 0}, "b 00:00:00": {1, 0, 0}})

		c.before = func(int) error { return errors.New("away") }
		r = newRecorder(c, 5*time.Second, 1000)
		stop = r.run()
		r.Count(counter("c"), usage.Accepted, time.Now())
		began := time.Now()
		stop()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the end took %s", took)
		}
		if !bytes.Contains(r.log.Bytes(), []byte("its counts are lost")) {
			t.Errorf("the log does not tell of the loss:\n%s", r.log)
		}
	})
}
