package embedded

import (
	"bufio"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryDir is where Linux keeps files in memory.
const memoryDir = "/dev/shm"

// muchMemory is what dozens of small databases do not use up: each begins with 45 MB.
const muchMemory = 4 << 30

// roomInMemory tells whether files in memoryDir really are in memory, and whether there is much of it. A container has 64 MB
// there, unless told otherwise.
func roomInMemory() bool {
	var system unix.Statfs_t
	if err := unix.Statfs(memoryDir, &system); err != nil || system.Type != unix.TMPFS_MAGIC {
		return false
	}
	free := system.Bavail * uint64(system.Bsize) //nolint:gosec // a block has a size
	return free >= muchMemory && availableMemory() >= muchMemory
}

// availableMemory is how many bytes the kernel would find without swapping; 0 if it does not say.
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
