package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// goCommandGone returns a channel that is closed when the go command that runs this program has ended: `go run` passes
// neither TERM nor its own death on. It is never closed for a program that anything else has started, so that the stack
// may outlive its shell. The watch ends when done is closed.
func goCommandGone(done <-chan struct{}) <-chan struct{} {
	gone := make(chan struct{})
	parent := os.Getppid()
	if programName(parent) != "go" {
		return gone
	}
	go func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for os.Getppid() == parent {
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
		close(gone)
	}()
	return gone
}

// programName is the name of a process's program, or empty.
func programName(pid int) string {
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
		return strings.TrimSpace(string(name))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	name, err := exec.CommandContext(ctx, "ps", "-o", "comm=", "-p", fmt.Sprint(pid)).Output()
	if err != nil {
		return ""
	}
	return filepath.Base(strings.TrimSpace(string(name)))
}
