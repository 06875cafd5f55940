package embedded

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// removeSharedMemory removes the System V segment that keyAndID, a line of postmaster.pid, names, if nothing is attached to
// it and it was the server's. Such a segment outlives a kill -9.
func removeSharedMemory(o *owner, keyAndID string) {
	fields := strings.Fields(keyAndID)
	if len(fields) != 2 {
		return
	}
	id, err := strconv.Atoi(fields[1])
	if err != nil {
		return
	}
	uid := os.Geteuid()
	if o != nil {
		uid = int(o.uid)
	}
	var segment unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &segment); err != nil || segment.Nattch != 0 || int(segment.Perm.Uid) != uid {
		return
	}
	_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
}
