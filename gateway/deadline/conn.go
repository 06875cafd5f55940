// Package deadline makes the deadlines of a connection cheap for whoever moves them with every request.
//
// To set a deadline takes a lock and moves a timer in the runtime. A server that does so for each of many short requests
// pays for timers that never fire. A Conn only notes a later deadline, and moves the timer when it fires too early.
package deadline

import (
	"errors"
	"net"
	"os"
	"time"
)

// Conn is a connection whose deadlines may be moved at hardly any cost. Reads, writes and the setting of their deadlines
// each belong to one goroutine at a time; to close it is anybody's right.
type Conn struct {
	net.Conn
	read, write moment
}

// moment is one direction's deadline.
type moment struct {
	// wanted is when calls shall fail, armed when they do; the zero time is never. Armed is never the later one.
	wanted, armed time.Time
}

// New wraps a connection on which no deadline is set.
func New(c net.Conn) *Conn { return &Conn{Conn: c} }

// want notes the deadline and tells whether it must be armed at once.
func (m *moment) want(t time.Time) (arm bool) {
	m.wanted = t
	switch {
	case t.IsZero():
		return !m.armed.IsZero()
	case m.armed.IsZero():
		return true
	default:
		return t.Before(m.armed)
	}
}

// early tells whether an error came of a deadline that has been moved on since it was armed.
func (m *moment) early(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && m.armed.Before(m.wanted) && time.Now().Before(m.wanted)
}

// SetReadDeadline is net.Conn's.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !c.read.want(t) {
		return nil
	}
	c.read.armed = t
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline is net.Conn's.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if !c.write.want(t) {
		return nil
	}
	c.write.armed = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline is net.Conn's.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Read is net.Conn's.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err == nil || n > 0 || !c.read.early(err) {
			return n, err
		}
		c.read.armed = c.read.wanted
		if err := c.Conn.SetReadDeadline(c.read.armed); err != nil {
			return 0, err
		}
	}
}

// Write is net.Conn's.
func (c *Conn) Write(p []byte) (written int, err error) {
	for {
		n, err := c.Conn.Write(p[written:])
		written += n
		if err == nil || !c.write.early(err) {
			return written, err
		}
		c.write.armed = c.write.wanted
		if err := c.Conn.SetWriteDeadline(c.write.armed); err != nil {
			return written, err
		}
	}
}
