package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// PostgresConfig says which Postgres is wanted.
type PostgresConfig struct {
	// URL is a database that is there already, named by someone who means this use of it. When it is set nothing is started and
	// nothing else here matters.
	URL string

	// Dir is where the data is kept; it is made when missing. One process at a time can use it. Required unless Ephemeral.
	Dir string

	// Ephemeral is for tests: an empty database in a temporary directory, which Stop removes, and the next start does if
	// Stop never came. It trades every safety on power loss for speed, and is kept in memory where there is plenty. Dir is
	// not used.
	Ephemeral bool

	// OnDisk keeps an ephemeral database out of memory, for what measures it or fills it.
	OnDisk bool

	// Env is added to the server's environment (NAME=value), such as a library that changes its clock; empty by default.
	Env []string

	// Settings of the server (name=value) win over this package's own.
	Settings []string

	// Log receives progress and the server's own lines, from several goroutines at once; nil discards them.
	Log func(line string)
}

// Postgres is a running server, or one that was handed in. Restart and Stop are not to be called at the same time.
type Postgres struct {
	// URL connects the superuser intents to the database intents. It works for the user who started it, and for root.
	URL string
	// Source says in a few words where this Postgres comes from.
	Source string

	ephemeral bool
	env       []string // beside that of the programs
	settings  []string
	parents   []string // of run
	log       func(line string)
	owner     *owner
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

// startAgainAfter is the pause where a server finds that another's memory is still in use.
const startAgainAfter = 100 * time.Millisecond

// StartPostgres starts a private server, or takes the one handed in; the package comment has the order in which it looks.
// It returns when the server accepts connections. ctx bounds the start only. A failed start leaves nothing running, and its
// error says in one line what to do.
func StartPostgres(ctx context.Context, config PostgresConfig) (*Postgres, error) {
	if config.URL != "" {
		return &Postgres{URL: config.URL, Source: "the one at the given URL"}, nil
	}
	p := &Postgres{
		ephemeral: config.Ephemeral, env: config.Env, settings: config.Settings, parents: diskParents(), log: config.Log,
	}
	if config.Ephemeral && !config.OnDisk {
		p.parents = ephemeralParents()
	}
	if p.log == nil {
		p.log = func(string) {}
	}
	err := p.prepare(ctx, config.Dir)
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

// prepare finds the server and makes its directories and its first data.
func (p *Postgres) prepare(ctx context.Context, dir string) error {
	var err error
	if p.owner, err = findOwner(); err != nil {
		return err
	}
	sweepRunDirs(p.owner)
	if p.ephemeral {
		return p.prepareEphemeral(ctx)
	}
	if dir == "" {
		return errors.New("no directory was given for the data")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("resolve data directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if p.lock, err = TryLock(filepath.Join(dir, "lock")); err != nil {
		return err
	}
	p.data = filepath.Join(dir, "data")
	version, _ := os.ReadFile(filepath.Join(p.data, "PG_VERSION"))
	if p.binaries, err = findBinaries(ctx, strings.TrimSpace(string(version)), p.log); err != nil {
		return err
	}
	if p.run, err = newRunDir(p.owner, p.parents); err != nil {
		return err
	}
	if err := p.owner.reach(dir, p.binaries.dir); err != nil {
		return err
	}
	if len(version) > 0 {
		return nil
	}
	p.log("making a new database in " + p.data)
	return p.binaries.makeCluster(ctx, p.owner, p.data, true)
}

func (p *Postgres) prepareEphemeral(ctx context.Context) error {
	var err error
	if p.binaries, err = findBinaries(ctx, "", p.log); err != nil {
		return err
	}
	if p.run, err = newRunDir(p.owner, p.parents); err != nil {
		return err
	}
	if err := p.owner.reach(p.run.path, p.binaries.dir); err != nil {
		return err
	}
	p.data = filepath.Join(p.run.path, "data")
	return p.binaries.copyTemplate(ctx, p.owner, p.data, p.log)
}

// Restart starts the server again on the same data and URL and returns when it accepts connections. A server that still
// runs is stopped first.
func (p *Postgres) Restart(ctx context.Context) error {
	if p.binaries == nil {
		return errors.New("a Postgres that was handed in is not this program's to restart")
	}
	if err := p.halt(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("it did not accept connections in time"))
	defer cancel()
	err := clearLeftovers(ctx, p.owner, p.data)
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
		// Children of a server that was killed have not all noticed yet.
		select {
		case <-time.After(startAgainAfter):
		case <-ctx.Done():
			return err
		}
	}
}

func (p *Postgres) command() Command {
	return Command{
		Name:   "postgres",
		Path:   filepath.Join(p.binaries.dir, "postgres"),
		Args:   p.arguments(),
		Env:    slices.Concat(p.binaries.env, p.env),
		Dir:    "/",
		Output: p.log,
		// On SIGQUIT the server takes its children along at once; they have left its process group.
		OrphanSignal: syscall.SIGQUIT,
		owner:        p.owner,
	}
}

func (p *Postgres) arguments() []string {
	settings := []string{
		"listen_addresses=",
		"unix_socket_directories=" + p.run.path,
		"cluster_name=" + clusterName(p.data),
		"max_connections=200",
		"log_line_prefix=",
		"log_checkpoints=off",
		"timezone=GMT",
		"log_timezone=GMT",
		"jit=off",
	}
	if p.ephemeral {
		settings = append(settings,
			"fsync=off", "full_page_writes=off", "synchronous_commit=off",
			// A replica looks for its primary at once, and not after seconds.
			"wal_retrieve_retry_interval=100ms",
			// Files beside the data leave nothing in /dev/shm when the server is killed.
			"dynamic_shared_memory_type=mmap")
	}
	args := []string{"-D", p.data}
	for _, setting := range append(settings, p.settings...) {
		args = append(args, "-c", setting)
	}
	return args
}

// awaitReady waits for what pg_ctl waits for: the word "ready" in the eighth line of postmaster.pid.
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

// PID is the server's process id; 0 for a server that was handed in.
func (p *Postgres) PID() int {
	if p.process == nil {
		return 0
	}
	return p.process.PID()
}

// Done is closed when the server that the last start or Restart began has ended; nil for one that was handed in.
func (p *Postgres) Done() <-chan struct{} {
	if p.process == nil {
		return nil
	}
	return p.process.Done()
}

// Stop ends the server and removes what was temporary. Calling it again is fine. A server that was handed in is left alone.
func (p *Postgres) Stop() error {
	p.stop.Do(func() {
		p.stopErr = p.halt()
		if p.run != nil {
			p.run.remove()
		}
		if p.lock != nil {
			p.lock.Unlock()
		}
	})
	return p.stopErr
}

// halt ends the server process: with a checkpoint, unless the data is thrown away anyway.
func (p *Postgres) halt() error {
	if p.process == nil {
		return nil
	}
	_ = p.Resume() // a suspended server would not hear of its end
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
