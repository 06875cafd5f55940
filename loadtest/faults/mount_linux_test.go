package faults_test

import (
	"fmt"
	"syscall"
)

var errNoSpace error = syscall.ENOSPC

func mountTmpfs(dir string, size int64) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", size))
}

func unmount(dir string) error { return syscall.Unmount(dir, 0) }
