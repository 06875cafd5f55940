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

// Ports are taken from below the ranges that Linux (32768–60999) and the others (49152–65535) give to outgoing
// connections, so that a server that restarts finds its port free.
const (
	firstPort = 20000
	lastPort  = 31999
)

// FreePort names a TCP port on host (empty: 127.0.0.1) that nothing listens on. It gives no port twice, neither in this
// process nor in another one of this user as long as this one lives, so that a server has the time to start on it.
func FreePort(host string) (int, error) {
	if host == "" {
		host = "127.0.0.1"
	}
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // a port is no secret
		mine, err := reserved.take(port)
		if err != nil {
			return 0, err
		}
		if mine && refuses(net.JoinHostPort(host, strconv.Itoa(port))) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port on %s: none of 200 was", host)
}

// refuses tells whether nothing listens at address. To try and listen there would be surer, but a child that is being
// forked at that moment would keep the socket open for a while.
func refuses(address string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(context.Background(), "tcp", address)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = conn.Close()
	return false
}

// reservations are the ports of this process: byte N of a file that all processes of this user share is locked for port N.
// The kernel frees such locks when the process ends.
type reservations struct {
	mu    sync.Mutex
	file  *os.File
	taken map[int]bool
}

var reserved = reservations{taken: map[int]bool{}}

func (r *reservations) take(port int) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[port] {
		return false, nil
	}
	if r.file == nil {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("intents-ports-%d", os.Geteuid()))
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return false, fmt.Errorf("open the list of ports in use: %w", err)
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
