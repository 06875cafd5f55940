package postgres

import (
	"sync/atomic"
	"time"
)

// clockDrift is how fast two clocks may drift apart, 100 µs a second.
const clockDrift = 10_000

// clock follows the database's clock, which all cores share. Between two readings it advances by the machine's monotonic clock,
// so a wrong or adjusted wall clock has no effect.
type clock struct{ reading atomic.Pointer[clockReading] }

// clockReading is the database's time at a time of the machine, with a maximum error of half the round trip (Cristian's
// algorithm).
type clockReading struct {
	database, own time.Time
	maxError      time.Duration
}

func (r *clockReading) at(own time.Time) time.Time { return r.database.Add(own.Sub(r.own)) }

// errorAt grows with the reading's age, as the clocks drift.
func (r *clockReading) errorAt(own time.Time) time.Duration {
	return r.maxError + own.Sub(r.own)/clockDrift
}

// now is the database's time, and the machine's before the first reading.
func (c *clock) now() time.Time {
	own := time.Now()
	if r := c.reading.Load(); r != nil {
		return r.at(own)
	}
	return own.UTC().Round(0)
}

// set adds a time that the database returned for a query with this begin and end. It ignores a less exact reading unless both
// cannot be right, as after the database's clock was set.
func (c *clock) set(database, began, ended time.Time) {
	roundTrip := ended.Sub(began)
	next := &clockReading{database: database.UTC(), own: began.Add(roundTrip / 2), maxError: roundTrip / 2}
	if last := c.reading.Load(); last != nil {
		known := last.errorAt(next.own)
		contradicts := next.database.Sub(last.at(next.own)).Abs() > known+next.maxError
		if next.maxError > known && !contradicts {
			return
		}
	}
	c.reading.Store(next)
}

// Now is the time by the database's clock as of the last call of SetClock, and the machine's own before the first. It
// decides deadlines and the expiry of keys and sessions, so that cores with different clocks agree.
func (d *DB) Now() time.Time { return d.clock.now() }

// SetClock adds a time that the database returned for a query with this begin and end.
func (d *DB) SetClock(database, began, ended time.Time) { d.clock.set(database, began, ended) }
