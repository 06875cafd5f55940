package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// runDir is the temporary directory of one server: its socket, its data if that is ephemeral, and a lock that is held while
// the program that created it runs.
type runDir struct {
	path string
	lock *Lock
}

const (
	runDirPrefix = "intents-pg-"
	// maxSocketPath is below the shortest limit of the systems, 103 bytes on macOS.
	maxSocketPath = 100
	socketName    = "/.s.PGSQL.5432"
)

// newRunDir creates the directory for a server that runs as u, in the first suitable parent. Only u and this program's user may
// enter it: the server does not authenticate connections.
func newRunDir(u *serverUser, parents []string) (*runDir, error) {
	parent, err := runDirParent(u, parents)
	if err != nil {
		return nil, err
	}
	// The directory gets its final name after its lock: sweep removes directories whose lock is free.
	draft, err := os.MkdirTemp(parent, "intents-new-*")
	if err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	lock, err := TryLock(filepath.Join(draft, "lock"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(draft))
	}
	run := &runDir{path: draft, lock: lock}
	path := filepath.Join(parent, runDirPrefix+strings.TrimPrefix(filepath.Base(draft), "intents-new-"))
	if err := run.chown(u); err != nil {
		run.remove()
		return nil, err
	}
	if err := os.Rename(draft, path); err != nil {
		run.remove()
		return nil, fmt.Errorf("rename run directory: %w", err)
	}
	run.path = path
	return run, nil
}

func (r *runDir) chown(u *serverUser) error {
	if u == nil {
		return nil
	}
	if err := os.Chown(r.path, int(u.uid), os.Getegid()); err != nil {
		return fmt.Errorf("change the owner of the run directory to user %s: %w", u.name, err)
	}
	if err := os.Chmod(r.path, 0o770); err != nil {
		return fmt.Errorf("make the run directory accessible to user %s: %w", u.name, err)
	}
	return nil
}

func (r *runDir) remove() {
	_ = os.RemoveAll(r.path)
	r.lock.Unlock()
}

// runDirParent is the first of parents that is short enough for the path of a socket and accessible to u.
func runDirParent(u *serverUser, parents []string) (string, error) {
	for _, dir := range parents {
		if len(dir)+len("/")+len(runDirPrefix)+len("4294967295")+len(socketName) > maxSocketPath {
			continue
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		if u != nil {
			if closed, err := u.firstUntraversable(dir); err != nil || closed != "" {
				continue
			}
		}
		return dir, nil
	}
	return "", errors.New("no directory is suitable for a database socket: set TMPDIR to a short path that every user can enter")
}

// diskParents are the parents of directories on disk, in order of preference.
func diskParents() []string { return []string{os.TempDir(), "/tmp"} }

// ephemeralParents are the parents of ephemeral data: a tmpfs first, if it has enough space.
func ephemeralParents() []string {
	if !tmpfsHasSpace() {
		return diskParents()
	}
	return append([]string{tmpfsDir}, diskParents()...)
}

// sweepRunDirs removes the directories of programs that were killed, and the servers that still run in them.
func sweepRunDirs(u *serverUser) {
	for _, parent := range append(diskParents(), tmpfsDir) {
		found, _ := filepath.Glob(filepath.Join(parent, runDirPrefix+"*"))
		for _, path := range found {
			if ownedByUs(u, path) {
				sweep(u, path)
			}
		}
	}
}

// ownedByUs reports whether path belongs to this user or its server user, as from newRunDir. Any user can create such names in a
// shared directory.
func ownedByUs(u *serverUser, path string) bool {
	me, server := os.Geteuid(), os.Geteuid()
	if u != nil {
		server = int(u.uid)
	}
	dir, dirErr := os.Lstat(path)
	lock, lockErr := os.Lstat(filepath.Join(path, "lock"))
	if dirErr != nil || lockErr != nil || !dir.IsDir() || !lock.Mode().IsRegular() {
		return false
	}
	dirStat, dirOK := dir.Sys().(*syscall.Stat_t)
	lockStat, lockOK := lock.Sys().(*syscall.Stat_t)
	return dirOK && lockOK && int(lockStat.Uid) == me && (int(dirStat.Uid) == me || int(dirStat.Uid) == server)
}

func sweep(u *serverUser, path string) {
	lock, err := TryLock(filepath.Join(path, "lock"))
	if err != nil {
		return
	}
	defer lock.Unlock()
	if err := removeStale(context.Background(), u, filepath.Join(path, "data")); err != nil {
		return
	}
	_ = os.RemoveAll(path)
}
