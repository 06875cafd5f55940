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

// CacheDir is where downloads and templates are kept, all of which can be made again: /var/cache/transfer-intents for
// root, whose servers run as another user that may not enter /root, and the user's cache directory for everyone else.
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

// DataDir is where a local stack keeps its data unless told otherwise: /var/lib/transfer-intents for root, below the
// user's cache directory for everyone else.
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

// ErrLocked says that another live process holds a lock.
var ErrLocked = errors.New("in use by another process")

// Lock is a lock file that only one process at a time can hold. The kernel frees it when that process ends, however it
// ends.
type Lock struct{ file *os.File }

// TryLock takes the lock at path, making the file when needed; ErrLocked when another process has it.
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

// AwaitLock takes the lock at path as soon as it is free. It calls waiting once when it is not free at once.
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

// Unlock frees the lock and leaves its file. Closing alone would not: a process that another goroutine is just starting has a
// copy of the file until it runs its program.
func (l *Lock) Unlock() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}
