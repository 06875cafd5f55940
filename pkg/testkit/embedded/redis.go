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

// RedisConfig configures a Redis.
type RedisConfig struct {
	// URL is an existing Redis, which is used instead of a private server.
	URL string

	// InProcess uses miniredis even if a server is installed.
	InProcess bool

	// Log receives the lines of the server's output; nil discards them.
	Log func(line string)
}

// Redis is a running server, private or external (RedisConfig.URL). A private one stores nothing on disk. Restart and Stop must
// not be called concurrently.
type Redis struct {
	// URL is redis://127.0.0.1:PORT/0, or the URL of the external server.
	URL string
	// Source describes where this Redis comes from.
	Source string

	log       func(line string)
	program   string
	port      int
	process   *Process
	inProcess *inProcessRedis
	stop      sync.Once
	stopErr   error
}

const (
	redisStartTimeout = 15 * time.Second
	redisStopGrace    = 5 * time.Second
)

// StartRedis starts a private server, unless the configuration names an external one, and returns when it answers. The package
// comment lists the servers. ctx bounds the start only. A failed start leaves nothing running.
func StartRedis(ctx context.Context, config RedisConfig) (*Redis, error) {
	if config.URL != "" {
		return &Redis{URL: config.URL, Source: "the one at the given URL"}, nil
	}
	r := &Redis{log: config.Log}
	if r.log == nil {
		r.log = func(string) {}
	}
	r.find(config.InProcess)
	// Another process may have taken a port that was free.
	var err error
	for range 3 {
		if r.port, err = FreePort(""); err != nil {
			break
		}
		r.URL = fmt.Sprintf("redis://127.0.0.1:%d/0", r.port)
		if err = r.Restart(ctx); err == nil {
			return r, nil
		}
		_ = r.stopProcess()
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("start Redis: %w", err)
}

// InProcess reports whether this is miniredis, which is slower than a server.
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

// Restart stops the server if it runs, starts it again, empty and on the same URL, and returns when it answers.
func (r *Redis) Restart(ctx context.Context) error {
	if r.port == 0 {
		return errors.New("an external Redis cannot be restarted")
	}
	if err := r.stopProcess(); err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port))
	if r.program == "" {
		var err error
		r.inProcess, err = startInProcessRedis(ctx, address)
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

// redisPID returns the process id of the server at address: another process may have taken the port first.
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
	return 0, errors.New("ask Redis: INFO has no process_id")
}

// PID is the server's process id, 0 for an external server and miniredis.
func (r *Redis) PID() int {
	if r.process == nil {
		return 0
	}
	return r.process.PID()
}

// Done is closed when the process of the last start or Restart has ended. It is nil for an external server and miniredis.
func (r *Redis) Done() <-chan struct{} {
	if r.process == nil {
		return nil
	}
	return r.process.Done()
}

// Stop ends the server. It may be called more than once, and does nothing to an external server.
func (r *Redis) Stop() error {
	r.stop.Do(func() { r.stopErr = r.stopProcess() })
	return r.stopErr
}

func (r *Redis) stopProcess() error {
	if r.inProcess != nil {
		r.inProcess.close()
		r.inProcess = nil
	}
	if r.process == nil {
		return nil
	}
	return r.process.Stop(syscall.SIGTERM, redisStopGrace)
}
