//go:build !linux && !darwin

package listen

import "syscall"

func boundUnsent(string, string, syscall.RawConn) error { return nil }
