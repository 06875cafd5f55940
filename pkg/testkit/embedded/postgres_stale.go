package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// removeStale kills the backends of a server that was killed, and removes its shared memory and postmaster.pid. The caller holds
// the lock of the data directory, so no other program uses these processes. Without /proc it does nothing; Postgres itself does
// not start while an old backend runs.
func removeStale(ctx context.Context, u *serverUser, data string) error {
	if !hasProcfs() {
		return nil
	}
	if err := killServer(ctx, data); err != nil {
		return err
	}
	lines := readPostmasterPID(data)
	if lines == nil {
		return nil
	}
	if len(lines) > 6 {
		removeSharedMemory(u, lines[6])
	}
	// The process id in it may belong to another process by now, for which Postgres would not start.
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil {
		return fmt.Errorf("remove stale postmaster.pid: %w", err)
	}
	return nil
}

func hasProcfs() bool {
	_, err := os.Stat("/proc/self/cmdline")
	return err == nil
}

// killServer kills every process of the server on data and returns when they have ended.
func killServer(ctx context.Context, data string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("it does not end after SIGKILL"))
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		pids := serverProcesses(data)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("kill process %d of an earlier server: %w", pids[0], context.Cause(ctx))
		}
	}
}

// serverProcesses are the processes of the server on data: the one with the argument -D data, and its children, of which the
// titles begin with the cluster's name.
func serverProcesses(data string) []int {
	main := []byte("\x00-D\x00" + data + "\x00")
	child := []byte("postgres: " + clusterName(data) + ":")
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var pids []int
	for _, file := range files {
		title, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(title, main) && !bytes.HasPrefix(title, child) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// readPostmasterPID returns the trimmed lines of postmaster.pid, nil if there is none.
func readPostmasterPID(data string) []string {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return nil
	}
	lines := strings.Split(string(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}
