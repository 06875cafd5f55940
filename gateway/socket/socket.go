// Package socket peeks at what a TCP connection has received.
package socket

import (
	"net"
	"syscall"
)

// State is what a connection has received.
type State int

const (
	// Unknown is the state on some systems, and of what is no TCP connection.
	Unknown State = iota
	// Idle connections have no unread bytes.
	Idle
	// Readable connections have unread bytes; what follows them is not known.
	Readable
	// Closed connections were reset or closed, or the other side has closed its sending side, as it does when it closes.
	Closed
)

// Peeker peeks at one connection, which others may use meanwhile. It is not for concurrent use itself.
type Peeker struct {
	raw   syscall.RawConn // nil where the state is Unknown
	peek  func(fd uintptr)
	state State
}

// NewPeeker makes a peeker for a connection.
func NewPeeker(conn net.Conn) *Peeker {
	p := &Peeker{}
	if socket, ok := conn.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			p.raw = raw
		}
	}
	p.peek = func(fd uintptr) { p.state = peek(int(fd)) }
	return p
}

// Peek returns the connection's state, without waiting.
func (p *Peeker) Peek() State {
	if p.raw == nil {
		return Unknown
	}
	if err := p.raw.Control(p.peek); err != nil {
		return Closed // closed on this side
	}
	return p.state
}
