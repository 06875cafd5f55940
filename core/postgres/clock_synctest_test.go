package postgres //nolint:testpackage // the clock has no exported name

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c clock
		if ahead := time.Until(c.now()); ahead != 0 {
			t.Errorf("before the first reading it is %s ahead of the machine's", ahead)
		}
		// read has the database's clock be ahead of the machine's by so much, and be read after wait of a longer round trip.
		read := func(ahead, wait, roundTrip time.Duration) time.Duration {
			began := time.Now()
			time.Sleep(wait)
			database := time.Now().Add(ahead)
			time.Sleep(roundTrip - wait)
			c.set(database, began, time.Now())
			return time.Until(c.now())
		}
		for _, step := range []struct {
			what            string
			ahead           time.Duration
			wait, roundTrip time.Duration
			later           time.Duration
			want            time.Duration
		}{
			{"the first reading", time.Hour, 5 * time.Millisecond, 10 * time.Millisecond, 0, time.Hour},
			{"a slow reading", time.Hour, 0, 300 * time.Millisecond, time.Second, time.Hour},
			{"a faster one", time.Hour, time.Millisecond, 2 * time.Millisecond, time.Second, time.Hour},
			{"the database's clock is set back", -time.Hour, time.Millisecond, 2 * time.Millisecond, time.Second, -time.Hour},
			{"it is set by less than a slow reading's error", -time.Hour + 100*time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond, time.Second, -time.Hour},
			{"it has drifted for long", -time.Hour + 100*time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond, time.Hour, -time.Hour + 100*time.Millisecond},
		} {
			time.Sleep(step.later)
			if ahead := read(step.ahead, step.wait, step.roundTrip); ahead != step.want {
				t.Errorf("%s: %s ahead of the machine's, want %s", step.what, ahead, step.want)
			}
		}
	})
}
