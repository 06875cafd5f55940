//go:build !linux

package faults_test

import (
	"errors"
	"syscall"
)

var errNoSpace error = syscall.ENOSPC

func mountTmpfs(string, int64) error { return errors.ErrUnsupported }

func unmount(string) error { return nil }
