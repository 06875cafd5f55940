//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package conn

import "syscall"

func peek(fd int) State {
	var one [1]byte
	n, _, err := syscall.Recvfrom(fd, one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	switch err {
	case nil:
	case syscall.EAGAIN:
		return Idle
	case syscall.EINTR:
		return Unknown
	default:
		return Closed
	}
	if n == 0 {
		return Closed
	}
	return Readable
}
