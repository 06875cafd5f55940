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

// ErrNoPgBouncer says that there is no pgbouncer on the machine.
var ErrNoPgBouncer = errors.New("pgbouncer is missing: install the Debian package pgbouncer")

// PgBouncerConfig says which Postgres a PgBouncer stands before, and how.
type PgBouncerConfig struct {
	// Server is where the databases are, in PgBouncer's own words, such as "host=/run/postgresql port=5432 user=intents".
	// Clients reach each of them by its name and as that user, without a password.
	Server string
	// Settings are lines for the section [pgbouncer], such as "pool_mode = transaction".
	Settings []string
	// Log receives the pooler's lines; nil discards them.
	Log func(line string)
}

// PgBouncer is a running pooler that listens on a Unix socket.
type PgBouncer struct {
	// Dir is the directory of the socket and Port the number in its name, as connection strings want them.
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

// StartPgBouncer starts a private pooler and returns when it accepts connections. ctx bounds the start only. It returns
// ErrNoPgBouncer where there is none on the machine.
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

// findPgBouncer looks on PATH, and where Debian puts what is for administrators and not on everybody's PATH.
func findPgBouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoPgBouncer
}

func (b *PgBouncer) start(ctx context.Context, path string, config PgBouncerConfig) error {
	owner, err := findOwner() // it does not run as root either
	if err != nil {
		return err
	}
	if b.run, err = newRunDir(owner, diskParents()); err != nil {
		return err
	}
	b.Dir = b.run.path
	if err := owner.reach(b.Dir); err != nil {
		return err
	}
	file := b.Dir + pgBouncerConfig
	if err := os.WriteFile(file, []byte(config.text(b.Dir)), 0o600); err != nil {
		return fmt.Errorf("write its configuration: %w", err)
	}
	if err := owner.own(file); err != nil {
		return err
	}
	b.process, err = StartProcess(Command{
		Name: "pgbouncer", Path: path, Args: []string{file}, Dir: "/", Output: config.Log, owner: owner,
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
		// Whoever may enter the directory may connect.
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

// Stop ends the pooler. Calling it again is fine.
func (b *PgBouncer) Stop() error {
	b.stop.Do(func() {
		if b.process != nil {
			b.stopErr = b.process.Stop(syscall.SIGTERM, 5*time.Second) // at once, and not when its clients have left
		}
		if b.run != nil {
			b.run.remove()
		}
	})
	return b.stopErr
}
