//go:build linux || darwin

package listen

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// boundUnsent sets the option on the listening socket, from which connections inherit it. It ignores a system that does not
// support the option.
func boundUnsent(_, _ string, socket syscall.RawConn) error {
	return socket.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, Unsent)
	})
}
