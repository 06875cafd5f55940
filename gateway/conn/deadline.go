package conn

import (
	"errors"
	"net"
	"os"
	"time"
)

// DeadlineConn is a connection whose deadlines are cheap to move with every request. Setting a deadline takes a lock and moves a
// runtime timer, which for many short requests never fires. A DeadlineConn only stores a later deadline, and moves the runtime
// timer when it fires too early.
//
// Only one goroutine at a time may read and set read deadlines, and one may write and set write deadlines; any goroutine may
// close it.
type DeadlineConn struct {
	net.Conn
	read, write timer
}

// timer is the deadline of one direction.
type timer struct {
	// wanted is the deadline, armed the runtime timer's, which is never later. The zero time is none.
	wanted, armed time.Time
}

// NewDeadlineConn wraps a connection that has no deadline.
func NewDeadlineConn(c net.Conn) *DeadlineConn { return &DeadlineConn{Conn: c} }

// set stores the deadline and reports whether it must be armed.
func (m *timer) set(t time.Time) (arm bool) {
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

// isEarly reports whether an error comes from an armed deadline that was moved since.
func (m *timer) isEarly(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && m.armed.Before(m.wanted) && time.Now().Before(m.wanted)
}

// SetReadDeadline is net.Conn's.
func (c *DeadlineConn) SetReadDeadline(t time.Time) error {
	if !c.read.set(t) {
		return nil
	}
	c.read.armed = t
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline is net.Conn's.
func (c *DeadlineConn) SetWriteDeadline(t time.Time) error {
	if !c.write.set(t) {
		return nil
	}
	c.write.armed = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline is net.Conn's.
func (c *DeadlineConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Read is net.Conn's.
func (c *DeadlineConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err == nil || n > 0 || !c.read.isEarly(err) {
			return n, err
		}
		c.read.armed = c.read.wanted
		if err := c.Conn.SetReadDeadline(c.read.armed); err != nil {
			return 0, err
		}
	}
}

// Write is net.Conn's.
func (c *DeadlineConn) Write(p []byte) (written int, err error) {
	for {
		n, err := c.Conn.Write(p[written:])
		written += n
		if err == nil || !c.write.isEarly(err) {
			return written, err
		}
		if err := c.rearmWrite(); err != nil {
			return written, err
		}
	}
}

// WriteBuffers writes the buffers, which it consumes, in one system call (writev) if the connection is TCP.
func (c *DeadlineConn) WriteBuffers(buffers net.Buffers) (written int, err error) {
	for {
		n, err := buffers.WriteTo(c.Conn)
		written += int(n)
		if err == nil || !c.write.isEarly(err) {
			return written, err
		}
		if err := c.rearmWrite(); err != nil {
			return written, err
		}
	}
}

// rearmWrite moves the runtime's timer to the deadline that was stored since.
func (c *DeadlineConn) rearmWrite() error {
	c.write.armed = c.write.wanted
	return c.Conn.SetWriteDeadline(c.write.armed)
}
