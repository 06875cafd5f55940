package embedded

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasParentDeathSignal says that the kernel signals a child whose parent has died (PR_SET_PDEATHSIG).
const hasParentDeathSignal = true

func setParentDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// awaitExit returns when pid has exited, and does not reap it: until it is reaped, no other process or group gets its id.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
