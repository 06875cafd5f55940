//go:build !linux

package embedded

import "syscall"

// kernelWatches says that nothing but a watchdog ends a child whose parent has died.
const kernelWatches = false

func setParentDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

// awaitExit does nothing here: the process is reaped first and the rest of its group is killed right after.
func awaitExit(int) {}
