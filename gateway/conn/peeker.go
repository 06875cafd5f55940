package conn

import (
	"net"
	"syscall"
)

// State is the receive state of a connection.
type State int

const (
	// Unknown is the state on unsupported systems and for connections that are not TCP.
	Unknown State = iota
	// Idle connections have no unread bytes.
	Idle
	// Readable connections have unread bytes; whether a close follows them is unknown.
	Readable
	// Closed connections were reset or closed, or the peer has closed its sending side.
	Closed
)

// Peeker peeks at one connection, which other goroutines may use meanwhile. A Peeker itself is not safe for concurrent use.
type Peeker struct {
	raw   syscall.RawConn // nil if the state is Unknown
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
