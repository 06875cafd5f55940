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

// watchGoCommand returns a channel that is closed when the go command that runs this program has ended: `go run` does not
// forward SIGTERM. The channel is never closed if another program, such as a shell, is the parent. The watch ends when done is
// closed.
func watchGoCommand(done <-chan struct{}) <-chan struct{} {
	ended := make(chan struct{})
	parent := os.Getppid()
	if programName(parent) != "go" {
		return ended
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
		close(ended)
	}()
	return ended
}

// programName is the name of a process's program, empty if it is unknown.
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
