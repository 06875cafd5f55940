// Package socket looks at what a TCP connection has received without taking any of it.
package socket

import (
	"net"
	"syscall"
)

// State is what a connection has received.
type State int

const (
	// Unknown is the state where it cannot be seen: on some systems, and for what is no TCP connection.
	Unknown State = iota
	// Quiet connections have received nothing that was not read.
	Quiet
	// Readable connections hold bytes that were not read; what comes after them is not known.
	Readable
	// Ended connections were reset or closed, or the other side has said that it sends no more, as it does when it closes.
	Ended
)

// Eye looks at one connection, whatever others do with that meanwhile. It is not for concurrent use itself.
type Eye struct {
	raw  syscall.RawConn // nil for what cannot be seen
	peek func(fd uintptr)
	seen State
}

// NewEye makes an eye for a connection.
func NewEye(conn net.Conn) *Eye {
	e := &Eye{}
	if socket, ok := conn.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			e.raw = raw
		}
	}
	e.peek = func(fd uintptr) { e.seen = peek(int(fd)) }
	return e
}

// Look tells the connection's state, without waiting.
func (e *Eye) Look() State {
	if e.raw == nil {
		return Unknown
	}
	if err := e.raw.Control(e.peek); err != nil {
		return Ended // closed on this side
	}
	return e.seen
}
