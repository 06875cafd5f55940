package embedded

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// kernelWatches says that the kernel itself ends a child whose parent has died.
const kernelWatches = true

func setParentDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// awaitExit returns when pid has exited, and leaves it unreaped: until it is reaped its id, and so its group's, belongs to
// nobody else.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
