package embedded

import (
	"bufio"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// tmpfsDir is the usual tmpfs of Linux.
const tmpfsDir = "/dev/shm"

// minTmpfsSpace is enough for dozens of small databases. An empty one takes 45 MB.
const minTmpfsSpace = 4 << 30

// tmpfsHasSpace reports whether tmpfsDir is a tmpfs with minTmpfsSpace free, and as much memory is available. The default in a
// container is 64 MB.
func tmpfsHasSpace() bool {
	var system unix.Statfs_t
	if err := unix.Statfs(tmpfsDir, &system); err != nil || system.Type != unix.TMPFS_MAGIC {
		return false
	}
	free := system.Bavail * uint64(system.Bsize) //nolint:gosec // a block has a size
	return free >= minTmpfsSpace && availableMemory() >= minTmpfsSpace
}

// availableMemory is MemAvailable in bytes, 0 if it is unknown.
func availableMemory() (bytes uint64) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	return 0
}
