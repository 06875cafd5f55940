package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// PostgresConfig configures a Postgres.
type PostgresConfig struct {
	// URL is an existing database, which is used instead of a private server. The other fields are ignored if it is set.
	URL string

	// Dir is the directory of the data, which is created if needed. One process at a time can use it. Required unless Ephemeral.
	Dir string

	// From is the Dir of a stopped database of the same programs, of which a new one in Dir is a copy; empty for an empty database.
	From string

	// Ephemeral is for tests: an empty database in a temporary directory, which Stop removes, or the next start if this program
	// was killed. It is not durable, and its files are in memory if there is enough. Dir is not used.
	Ephemeral bool

	// OnDisk keeps the files of an ephemeral database on disk, for tests that measure or fill it.
	OnDisk bool

	// Env is added to the server's environment (NAME=value), such as a preloaded library; empty by default.
	Env []string

	// Settings of the server (name=value) override those of this package.
	Settings []string

	// Progress receives what this package does that takes a while, such as downloads. Default: Log.
	Progress func(line string)

	// Log receives the lines of the server's output, from several goroutines at once; nil discards them.
	Log func(line string)
}

// Postgres is a running server, private or external (PostgresConfig.URL). Restart and Stop must not be called concurrently.
type Postgres struct {
	// URL connects the superuser intents to the database intents. It works for the user who started it, and for root.
	URL string
	// Source describes where this Postgres comes from.
	Source string

	ephemeral bool
	inMemory  bool     // ephemeralParents prefers directories in memory
	env       []string // added to the environment of the binaries
	settings  []string
	parents   []string // candidate parents of run
	log       func(line string)
	progress  func(line string)
	user      *serverUser
	binaries  *binaries
	run       *runDir
	lock      *Lock
	data      string
	process   *Process
	stop      sync.Once
	stopErr   error
}

// startTimeout bounds the start of a server, crash recovery included.
const startTimeout = 2 * time.Minute

// restartPause is the pause before a server is started again that found the shared memory of an earlier one in use.
const restartPause = 100 * time.Millisecond

// StartPostgres starts a private server, unless the configuration names an external one, and returns when it accepts
// connections. The package comment lists where its binaries come from. ctx bounds the start only. A failed start leaves
// nothing running, and its error says what to do.
func StartPostgres(ctx context.Context, config PostgresConfig) (*Postgres, error) {
	if config.URL != "" {
		return &Postgres{URL: config.URL, Source: "the one at the given URL"}, nil
	}
	p := &Postgres{
		ephemeral: config.Ephemeral, inMemory: config.Ephemeral && !config.OnDisk, env: config.Env, settings: config.Settings, parents: diskParents(), log: config.Log,
		progress: config.Progress,
	}
	if p.inMemory {
		p.parents = ephemeralParents()
	}
	if p.log == nil {
		p.log = func(string) {}
	}
	if p.progress == nil {
		p.progress = p.log
	}
	err := p.prepare(ctx, config.Dir, config.From)
	if err == nil {
		p.URL = "postgres://intents@/intents?host=" + p.run.path
		p.Source = fmt.Sprintf("%s (%s), private, on a Unix socket", p.binaries.version, p.binaries.source)
		err = p.Restart(ctx)
	}
	if err != nil {
		_ = p.Stop()
		return nil, fmt.Errorf("start Postgres: %w", err)
	}
	return p, nil
}

// prepare finds the binaries and creates the directories and the cluster.
func (p *Postgres) prepare(ctx context.Context, dir, from string) error {
	var err error
	if p.user, err = findServerUser(); err != nil {
		return err
	}
	sweepRunDirs(p.user)
	if p.ephemeral {
		return p.prepareEphemeral(ctx)
	}
	if dir == "" {
		return errors.New("PostgresConfig.Dir is required, unless the database is ephemeral")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("resolve data directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	if p.lock, err = TryLock(filepath.Join(dir, "lock")); err != nil {
		return err
	}
	p.data = filepath.Join(dir, "data")
	version, _ := os.ReadFile(filepath.Join(p.data, "PG_VERSION"))
	if p.binaries, err = findBinaries(ctx, strings.TrimSpace(string(version)), p.progress); err != nil {
		return err
	}
	if p.run, err = newRunDir(p.user, p.parents); err != nil {
		return err
	}
	if err := p.user.ensureTraversable(dir, p.binaries.dir); err != nil {
		return err
	}
	switch {
	case len(version) > 0:
		return nil
	case from != "":
		return copyCluster(ctx, p.user, filepath.Join(from, "data"), p.data)
	}
	p.progress("creating a database in " + p.data)
	return p.binaries.initCluster(ctx, p.user, p.data, true)
}

func (p *Postgres) prepareEphemeral(ctx context.Context) error {
	var err error
	if p.binaries, err = findBinaries(ctx, "", p.progress); err != nil {
		return err
	}
	if p.run, err = newRunDir(p.user, p.parents); err != nil {
		return err
	}
	if err := p.user.ensureTraversable(p.run.path, p.binaries.dir); err != nil {
		return err
	}
	p.data = filepath.Join(p.run.path, "data")
	return p.binaries.copyTemplate(ctx, p.user, p.data, p.progress)
}

// Restart stops the server if it runs, starts it again with the same data and URL, and returns when it accepts connections.
func (p *Postgres) Restart(ctx context.Context) error {
	if p.binaries == nil {
		return errors.New("an external Postgres cannot be restarted")
	}
	if err := p.stopProcess(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("it did not accept connections in time"))
	defer cancel()
	err := removeStale(ctx, p.user, p.data)
	if err != nil {
		return err
	}
	for {
		if p.process, err = StartProcess(p.command()); err != nil {
			return err
		}
		err = p.awaitReady(ctx)
		if err == nil || !strings.Contains(err.Error(), "pre-existing shared memory") {
			return err
		}
		// Some backends of the server that was killed still run.
		select {
		case <-time.After(restartPause):
		case <-ctx.Done():
			return err
		}
	}
}

// awaitReady waits, as pg_ctl does, for "ready" in the eighth line of postmaster.pid.
func (p *Postgres) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	pid := strconv.Itoa(p.process.PID())
	for {
		lines := readPostmasterPID(p.data)
		if len(lines) > 7 && lines[0] == pid && lines[7] == "ready" {
			return nil
		}
		select {
		case <-ticker.C:
		case <-p.process.Done():
			if err := p.process.Err(); err != nil {
				return err
			}
			return fmt.Errorf("it ended while starting%s", p.process.Tail())
		case <-ctx.Done():
			err := fmt.Errorf("%w%s", context.Cause(ctx), p.process.Tail())
			return errors.Join(err, p.process.Stop(syscall.SIGQUIT, 5*time.Second))
		}
	}
}

// PID is the server's process id, 0 for an external server.
func (p *Postgres) PID() int {
	if p.process == nil {
		return 0
	}
	return p.process.PID()
}

// Done is closed when the process of the last start or Restart has ended. It is nil for an external server.
func (p *Postgres) Done() <-chan struct{} {
	if p.process == nil {
		return nil
	}
	return p.process.Done()
}

// Stop ends the server and removes its temporary files. It may be called more than once, and does nothing to an external
// server.
func (p *Postgres) Stop() error {
	p.stop.Do(func() {
		p.stopErr = p.stopProcess()
		if p.run != nil {
			p.run.remove()
		}
		if p.lock != nil {
			p.lock.Unlock()
		}
	})
	return p.stopErr
}

// stopProcess ends the server process: with a checkpoint, unless the data is ephemeral.
func (p *Postgres) stopProcess() error {
	if p.process == nil {
		return nil
	}
	_ = p.Resume() // a suspended process does not receive the signals below
	if p.ephemeral {
		return p.process.Stop(syscall.SIGQUIT, 10*time.Second)
	}
	if err := p.process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	select {
	case <-p.process.Done():
		return nil
	case <-timer.C:
		return p.process.Stop(syscall.SIGQUIT, 5*time.Second)
	}
}
