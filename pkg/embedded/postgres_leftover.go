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

// clearLeftovers ends what a killed server left behind: backends that were busy when it died, and its shared memory. The
// caller holds the lock on the data, so whatever still runs on it has no owner. Where there is no /proc this is left to
// Postgres, which refuses to start while an old backend lives.
func clearLeftovers(ctx context.Context, o *owner, data string) error {
	if !hasProc() {
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
		removeSharedMemory(o, lines[6])
	}
	// Postgres would wait for whichever process has got that id by now.
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil {
		return fmt.Errorf("remove stale postmaster.pid: %w", err)
	}
	return nil
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/cmdline")
	return err == nil
}

// killServer ends every process of the server on data and returns when they are gone.
func killServer(ctx context.Context, data string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("it does not end"))
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
			return fmt.Errorf("end process %d of an earlier server: %w", pids[0], context.Cause(ctx))
		}
	}
}

// serverProcesses are the processes of the server on data: the one started with it as its -D, and its children, which
// lead their titles with the cluster's name.
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

// readPostmasterPID is the lines of the server's lock file, trimmed; nil when there is none.
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
