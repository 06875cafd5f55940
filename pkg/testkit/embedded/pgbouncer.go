package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrNoPgBouncer means that there is no pgbouncer on the machine.
var ErrNoPgBouncer = errors.New("pgbouncer is missing: install the Debian package pgbouncer")

// PgBouncerConfig configures a PgBouncer.
type PgBouncerConfig struct {
	// Server is the connection string of the Postgres server, such as "host=/run/postgresql port=5432 user=intents". Clients
	// connect to its databases by their names, as that user and without a password.
	Server string
	// Settings are lines for the section [pgbouncer], such as "pool_mode = transaction".
	Settings []string
	// Log receives the lines of PgBouncer's output; nil discards them.
	Log func(line string)
}

// PgBouncer is a running pooler that listens on a Unix socket.
type PgBouncer struct {
	// Dir is the directory of the socket and Port the number in its name, as in connection strings.
	Dir  string
	Port int

	run     *runDir
	process *Process
	stop    sync.Once
	stopErr error
}

const (
	pgBouncerPort   = 6432
	pgBouncerConfig = "/pgbouncer.ini"
	pgBouncerStart  = 20 * time.Second
)

// StartPgBouncer starts a private PgBouncer and returns when it accepts connections. ctx bounds the start only. It returns
// ErrNoPgBouncer if the machine has none.
func StartPgBouncer(ctx context.Context, config PgBouncerConfig) (*PgBouncer, error) {
	path, err := findPgBouncer()
	if err != nil {
		return nil, err
	}
	b := &PgBouncer{Port: pgBouncerPort}
	if err := b.start(ctx, path, config); err != nil {
		_ = b.Stop()
		return nil, fmt.Errorf("start PgBouncer: %w", err)
	}
	return b, nil
}

// findPgBouncer looks on PATH and in /usr/sbin, where Debian installs it and which is not on every user's PATH.
func findPgBouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoPgBouncer
}

func (b *PgBouncer) start(ctx context.Context, path string, config PgBouncerConfig) error {
	user, err := findServerUser() // PgBouncer does not run as root either
	if err != nil {
		return err
	}
	if b.run, err = newRunDir(user, diskParents()); err != nil {
		return err
	}
	b.Dir = b.run.path
	if err := user.ensureTraversable(b.Dir); err != nil {
		return err
	}
	file := b.Dir + pgBouncerConfig
	if err := os.WriteFile(file, []byte(config.text(b.Dir)), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if err := user.chown(file); err != nil {
		return err
	}
	b.process, err = StartProcess(Command{
		Name: "pgbouncer", Path: path, Args: []string{file}, Dir: "/", Output: config.Log, user: user,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pgBouncerStart, errors.New("it did not accept connections in time"))
	defer cancel()
	return b.awaitReady(ctx)
}

func (c PgBouncerConfig) text(dir string) string {
	lines := append([]string{
		"[databases]", "* = " + c.Server,
		"[pgbouncer]", "listen_port = " + strconv.Itoa(pgBouncerPort), "unix_socket_dir = " + dir,
		// The permissions of the directory decide who may connect.
		"auth_type = any",
	}, c.Settings...)
	return strings.Join(lines, "\n") + "\n"
}

func (b *PgBouncer) awaitReady(ctx context.Context) error {
	socket := filepath.Join(b.Dir, ".s.PGSQL."+strconv.Itoa(b.Port))
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ticker.C:
		case <-b.process.Done():
			if err := b.process.Err(); err != nil {
				return err
			}
			return fmt.Errorf("it ended while starting%s", b.process.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%w%s", context.Cause(ctx), b.process.Tail())
		}
	}
}

// Stop ends the PgBouncer. It may be called more than once.
func (b *PgBouncer) Stop() error {
	b.stop.Do(func() {
		if b.process != nil {
			b.stopErr = b.process.Stop(syscall.SIGTERM, 5*time.Second) // SIGTERM does not wait for the clients
		}
		if b.run != nil {
			b.run.remove()
		}
	})
	return b.stopErr
}
