package postgres

import (
	"sync/atomic"
	"time"
)

// maxClockRoundTrip is how long reading the database's clock may take for the reading to count: half of it is the error.
const maxClockRoundTrip = 250 * time.Millisecond

// clock follows the database's, which is one for all cores. Between two readings it goes on by the machine's monotonic clock, so
// that a wall clock that is wrong or set changes nothing.
type clock struct{ reading atomic.Pointer[clockReading] }

type clockReading struct{ database, own time.Time }

// now is the database's time; the machine's before the first reading.
func (c *clock) now() time.Time {
	own := time.Now()
	if r := c.reading.Load(); r != nil {
		return r.database.Add(own.Sub(r.own))
	}
	return own.UTC().Round(0)
}

// set takes a time that the database gave in answer to a query that began and ended then.
func (c *clock) set(database, began, ended time.Time) {
	roundTrip := ended.Sub(began)
	if roundTrip > maxClockRoundTrip && c.reading.Load() != nil {
		return
	}
	c.reading.Store(&clockReading{database: database.UTC(), own: began.Add(roundTrip / 2)})
}

// Now is the time by the database's clock as of the last call of RegistryVersion; the machine's own before the first. Deadlines
// and the expiry of keys and sessions are decided by it, so that cores whose clocks differ decide alike.
func (s *Store) Now() time.Time { return s.clock.now() }
