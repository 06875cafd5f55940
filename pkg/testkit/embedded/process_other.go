//go:build !linux

package embedded

import "syscall"

// hasParentDeathSignal says that a watchdog must end a child whose parent has died.
const hasParentDeathSignal = false

func setParentDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

// awaitExit does nothing: the process is reaped first, and the rest of its group is killed right after.
func awaitExit(int) {}
