package embedded

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// removeSharedMemory removes the System V shared memory of a killed server, which SIGKILL leaves behind. keyAndID is the line of
// postmaster.pid that names it. A segment that a process is attached to, or that belongs to another user, is kept.
func removeSharedMemory(u *serverUser, keyAndID string) {
	fields := strings.Fields(keyAndID)
	if len(fields) != 2 {
		return
	}
	id, err := strconv.Atoi(fields[1])
	if err != nil {
		return
	}
	uid := os.Geteuid()
	if u != nil {
		uid = int(u.uid)
	}
	var segment unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &segment); err != nil || segment.Nattch != 0 || int(segment.Perm.Uid) != uid {
		return
	}
	_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
}
