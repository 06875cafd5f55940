//go:build !linux

package embedded

import "syscall"

func passCapability() (uintptr, bool) { return 0, false }

func setAmbientCaps(*syscall.SysProcAttr, []uintptr) {}
