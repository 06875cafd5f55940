//go:build !linux

package embedded

import "syscall"

func traverseCapability() (uintptr, bool) { return 0, false }

func setAmbientCaps(*syscall.SysProcAttr, []uintptr) {}
