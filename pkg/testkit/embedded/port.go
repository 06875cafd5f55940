package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// The ports are below the ephemeral port ranges of Linux (32768–60999) and the other systems (49152–65535), so that a server
// that restarts finds its port free.
const (
	firstPort = 20000
	lastPort  = 31999
)

// FreePort returns a TCP port on host (empty: 127.0.0.1) that nothing listens on. It returns no port twice, neither in this
// process nor in another one of this user while this one runs, so that a server has the time to listen on it.
func FreePort(host string) (int, error) {
	if host == "" {
		host = "127.0.0.1"
	}
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // a port is no secret
		mine, err := reserved.reserve(port)
		if err != nil {
			return 0, err
		}
		if mine && connectionRefused(net.JoinHostPort(host, strconv.Itoa(port))) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port on %s: none of 200 is free", host)
}

// ReservePort reports whether nothing listens on a port of host (empty: 127.0.0.1), and reserves it as FreePort does. Ports below
// 1024 and over 65535 are not free.
func ReservePort(host string, port int) (bool, error) {
	if host == "" {
		host = "127.0.0.1"
	}
	if port < 1024 || port > 65535 {
		return false, nil
	}
	mine, err := reserved.reserve(port)
	if err != nil {
		return false, err
	}
	return mine && connectionRefused(net.JoinHostPort(host, strconv.Itoa(port))), nil
}

// connectionRefused reports whether nothing listens at address. A listener would be a surer test, but a child that is being
// forked at the same time would keep its socket open for a while.
func connectionRefused(address string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(context.Background(), "tcp", address)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = conn.Close()
	return false
}

// reservations are the ports of this process. A file that all processes of this user share has byte N locked for port N; the
// kernel releases such locks when the process ends.
type reservations struct {
	mu    sync.Mutex
	file  *os.File
	taken map[int]bool
}

var reserved = reservations{taken: map[int]bool{}}

func (r *reservations) reserve(port int) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[port] {
		return false, nil
	}
	if r.file == nil {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("intents-ports-%d", os.Geteuid()))
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return false, fmt.Errorf("open the file of reserved ports: %w", err)
		}
		r.file = file
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1}
	err := syscall.FcntlFlock(r.file.Fd(), syscall.F_SETLK, &lock)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reserve port %d: %w", port, err)
	}
	r.taken[port] = true
	return true, nil
}
