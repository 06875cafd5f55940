package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// RedisConfig says which Redis is wanted.
type RedisConfig struct {
	// URL is a Redis that is there already, named by someone who means this use of it. When it is set nothing is started.
	URL string

	// InProcess asks for the one inside this program even where a server is installed.
	InProcess bool

	// Log receives progress and the server's own lines, from several goroutines at once; nil discards them.
	Log func(line string)
}

// Redis is a running server, or one that was handed in. It keeps nothing on disk. Restart and Stop are not to be called at
// the same time.
type Redis struct {
	// URL is redis://127.0.0.1:PORT/0, or the one handed in.
	URL string
	// Source says in a few words where this Redis comes from.
	Source string

	log     func(line string)
	program string
	port    int
	process *Process
	memory  *memoryRedis
	stop    sync.Once
	stopErr error
}

const (
	redisStartTimeout = 15 * time.Second
	redisStopGrace    = 5 * time.Second
)

// StartRedis starts a private server, or takes the one handed in; the package comment has the order in which it looks. It
// returns when the server answers. ctx bounds the start only. A failed start leaves nothing running.
func StartRedis(ctx context.Context, config RedisConfig) (*Redis, error) {
	if config.URL != "" {
		return &Redis{URL: config.URL, Source: "the one at the given URL"}, nil
	}
	r := &Redis{log: config.Log}
	if r.log == nil {
		r.log = func(string) {}
	}
	r.find(config.InProcess)
	// A port that was free a moment ago may be taken by now.
	var err error
	for range 3 {
		if r.port, err = FreePort(""); err != nil {
			break
		}
		r.URL = fmt.Sprintf("redis://127.0.0.1:%d/0", r.port)
		if err = r.Restart(ctx); err == nil {
			return r, nil
		}
		_ = r.halt()
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("start Redis: %w", err)
}

// InProcess tells that this is miniredis: right in every decision, and slow.
func (r *Redis) InProcess() bool { return r.port != 0 && r.program == "" }

func (r *Redis) find(inProcess bool) {
	r.Source = "miniredis, in this process (no redis-server or valkey-server on PATH)"
	if inProcess {
		r.Source = "miniredis, in this process"
		return
	}
	for _, program := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(program); err == nil {
			r.program = path
			r.Source = fmt.Sprintf("%s (%s), private", program, path)
			return
		}
	}
}

// Restart starts the server again, empty, on the same URL and returns when it answers. One that still runs is stopped
// first.
func (r *Redis) Restart(ctx context.Context) error {
	if r.port == 0 {
		return errors.New("a Redis that was handed in is not this program's to restart")
	}
	if err := r.halt(); err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port))
	if r.program == "" {
		var err error
		r.memory, err = startMemoryRedis(ctx, address)
		return err
	}
	process, err := StartProcess(Command{
		Name: "redis",
		Path: r.program,
		Args: []string{
			"--bind", "127.0.0.1", "--port", strconv.Itoa(r.port),
			"--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", os.TempDir(), "--loglevel", "warning",
		},
		Output: r.log,
	})
	if err != nil {
		return err
	}
	r.process = process
	return r.awaitReady(ctx, address)
}

func (r *Redis) awaitReady(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, redisStartTimeout, errors.New("it did not answer in time"))
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		pid, err := redisPID(ctx, address)
		if err == nil && pid == r.process.PID() {
			return nil
		}
		select {
		case <-ticker.C:
		case <-r.process.Done():
			if err := r.process.Err(); err != nil {
				return err
			}
			return fmt.Errorf("it ended while starting%s", r.process.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%w%s", context.Cause(ctx), r.process.Tail())
		}
	}
}

// redisPID asks the server at address who it is: somebody else's may have got the port first.
func redisPID(ctx context.Context, address string) (int, error) {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, fmt.Errorf("dial Redis: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, fmt.Errorf("ask Redis: %w", err)
	}
	if _, err := conn.Write([]byte("INFO server\r\nQUIT\r\n")); err != nil {
		return 0, fmt.Errorf("ask Redis: %w", err)
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			return strconv.Atoi(value)
		}
	}
	return 0, errors.New("ask Redis: it names no process id")
}

// PID is the server's process id; 0 for one that was handed in or runs inside this process.
func (r *Redis) PID() int {
	if r.process == nil {
		return 0
	}
	return r.process.PID()
}

// Done is closed when the server that the last start or Restart began has ended; nil where there is no such process.
func (r *Redis) Done() <-chan struct{} {
	if r.process == nil {
		return nil
	}
	return r.process.Done()
}

// Stop ends the server. Calling it again is fine. One that was handed in is left alone.
func (r *Redis) Stop() error {
	r.stop.Do(func() { r.stopErr = r.halt() })
	return r.stopErr
}

func (r *Redis) halt() error {
	if r.memory != nil {
		r.memory.close()
		r.memory = nil
	}
	if r.process == nil {
		return nil
	}
	return r.process.Stop(syscall.SIGTERM, redisStopGrace)
}
