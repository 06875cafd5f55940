package postgres

import (
	"sync/atomic"
	"time"
)

// maxClockRoundTrip is the longest round trip of a clock reading that counts. Half of it is the error of the reading.
const maxClockRoundTrip = 250 * time.Millisecond

// clock follows the database's clock, which is one for all cores. Between two readings it advances by the machine's monotonic
// clock, so that a wall clock that is wrong or set has no effect.
type clock struct{ reading atomic.Pointer[clockReading] }

type clockReading struct{ database, own time.Time }

// now is the database's time, and the machine's before the first reading.
func (c *clock) now() time.Time {
	own := time.Now()
	if r := c.reading.Load(); r != nil {
		return r.database.Add(own.Sub(r.own))
	}
	return own.UTC().Round(0)
}

// set takes a time that the database returned for a query with this begin and end.
func (c *clock) set(database, began, ended time.Time) {
	roundTrip := ended.Sub(began)
	if roundTrip > maxClockRoundTrip && c.reading.Load() != nil {
		return
	}
	c.reading.Store(&clockReading{database: database.UTC(), own: began.Add(roundTrip / 2)})
}

// Now is the time by the database's clock as of the last call of RegistryVersion, and the machine's own before the first. It
// decides deadlines and the expiry of keys and sessions, so that cores whose clocks differ agree.
func (s *Store) Now() time.Time { return s.clock.now() }
