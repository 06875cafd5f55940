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

// runDir is the temporary directory of one server: its socket, its data when that is ephemeral, and a lock that tells
// whether the program that made it still lives.
type runDir struct {
	path string
	lock *Lock
}

const (
	runDirPrefix = "intents-pg-"
	// maxSocketPath is what the shortest of the systems' limits (103, on macOS) leaves, rounded down.
	maxSocketPath = 100
	socketName    = "/.s.PGSQL.5432"
)

// newRunDir makes the directory for a server that runs as o, in the first of parents that will do. Only o and this program's
// user may enter it: the server in it trusts whoever connects.
func newRunDir(o *owner, parents []string) (*runDir, error) {
	parent, err := runDirParent(o, parents)
	if err != nil {
		return nil, err
	}
	// The final name comes after the lock: a sweep takes a directory whose lock is free for one without an owner.
	draft, err := os.MkdirTemp(parent, "intents-new-*")
	if err != nil {
		return nil, fmt.Errorf("make run directory: %w", err)
	}
	lock, err := TryLock(filepath.Join(draft, "lock"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(draft))
	}
	run := &runDir{path: draft, lock: lock}
	path := filepath.Join(parent, runDirPrefix+strings.TrimPrefix(filepath.Base(draft), "intents-new-"))
	if err := run.admit(o); err != nil {
		run.remove()
		return nil, err
	}
	if err := os.Rename(draft, path); err != nil {
		run.remove()
		return nil, fmt.Errorf("name run directory: %w", err)
	}
	run.path = path
	return run, nil
}

func (r *runDir) admit(o *owner) error {
	if o == nil {
		return nil
	}
	if err := os.Chown(r.path, int(o.uid), os.Getegid()); err != nil {
		return fmt.Errorf("hand run directory over to user %s: %w", o.name, err)
	}
	if err := os.Chmod(r.path, 0o770); err != nil {
		return fmt.Errorf("open run directory to user %s: %w", o.name, err)
	}
	return nil
}

func (r *runDir) remove() {
	_ = os.RemoveAll(r.path)
	r.lock.Unlock()
}

// runDirParent is the first of parents that is not too deep for a socket, nor closed to o.
func runDirParent(o *owner, parents []string) (string, error) {
	for _, dir := range parents {
		if len(dir)+len("/")+len(runDirPrefix)+len("4294967295")+len(socketName) > maxSocketPath {
			continue
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		if o != nil {
			if closed, err := o.closedOn(dir); err != nil || closed != "" {
				continue
			}
		}
		return dir, nil
	}
	return "", errors.New("no directory is fit for a database socket: set TMPDIR to a short one that every user can enter")
}

// diskParents are the places for what is to be on disk, the usual one first.
func diskParents() []string { return []string{os.TempDir(), "/tmp"} }

// ephemeralParents begin with memory, if this machine has plenty of it.
func ephemeralParents() []string {
	if !roomInMemory() {
		return diskParents()
	}
	return append([]string{memoryDir}, diskParents()...)
}

// sweepRunDirs removes the directories of programs that were killed, and ends what still runs in them.
func sweepRunDirs(o *owner) {
	for _, parent := range append(diskParents(), memoryDir) {
		found, _ := filepath.Glob(filepath.Join(parent, runDirPrefix+"*"))
		for _, path := range found {
			if ours(o, path) {
				sweep(o, path)
			}
		}
	}
}

// ours tells whether path was made by newRunDir for this user: in a directory that all may write to, only the owners of
// files can be trusted.
func ours(o *owner, path string) bool {
	me, server := os.Geteuid(), os.Geteuid()
	if o != nil {
		server = int(o.uid)
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

func sweep(o *owner, path string) {
	lock, err := TryLock(filepath.Join(path, "lock"))
	if err != nil {
		return
	}
	defer lock.Unlock()
	if err := clearLeftovers(context.Background(), o, filepath.Join(path, "data")); err != nil {
		return
	}
	_ = os.RemoveAll(path)
}
