//go:build linux || darwin

package listen

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// boundUnsent sets the bound on the listening socket, from which connections inherit it. A system that does not know
// the option serves without.
func boundUnsent(_, _ string, socket syscall.RawConn) error {
	return socket.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, Unsent)
	})
}
