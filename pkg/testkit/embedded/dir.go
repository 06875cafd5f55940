package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// product names this project's directories on a machine.
const product = "transfer-intents"

// CacheDir is the directory of downloads and templates, all of which can be recreated: /var/cache/transfer-intents for
// root, whose servers run as another user that may not enter /root, and the user's cache directory for every other user.
func CacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return filepath.Join("/var/cache", product), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	return filepath.Join(dir, product), nil
}

// DataDir is the default directory of a local stack's data: /var/lib/transfer-intents for root, and a directory below the
// user's cache directory for every other user.
func DataDir() (string, error) {
	if os.Geteuid() == 0 {
		return filepath.Join("/var/lib", product), nil
	}
	dir, err := CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "data"), nil
}

// ErrLocked means that another running process holds the lock.
var ErrLocked = errors.New("in use by another process")

// Lock is a lock file that one process at a time can hold. The kernel releases it when that process ends, also by a crash.
type Lock struct{ file *os.File }

// TryLock acquires the lock at path and creates the file if needed. It returns ErrLocked if another process holds the lock.
func TryLock(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &Lock{file}, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w", path, ErrLocked)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// AwaitLock acquires the lock at path as soon as it is free. It calls waiting once if it has to wait.
func AwaitLock(ctx context.Context, path string, waiting func()) (*Lock, error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for first := true; ; first = false {
		lock, err := TryLock(path)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		if first {
			waiting()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock: %w", context.Cause(ctx))
		}
	}
}

// Unlock releases the lock and keeps its file. Close alone does not release it: a process that another goroutine is forking has
// a copy of the descriptor until it calls exec.
func (l *Lock) Unlock() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}

// AwaitTurn waits until no other process of this user has the turn of that name, and takes it until the lock is released. The tests of whole
// stacks take turns, because two stacks at once delay each other past the limits that are tested.
func AwaitTurn(ctx context.Context, name string, waiting func()) (*Lock, error) {
	dir, err := CacheDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return AwaitLock(ctx, filepath.Join(dir, name+".lock"), waiting)
}
