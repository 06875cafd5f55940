package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
)

// StartReplica starts a read-only streaming replica of p from a pg_basebackup, and returns when it accepts connections. Stop
// removes it, like every ephemeral server. ctx bounds the start only.
func (p *Postgres) StartReplica(ctx context.Context) (*Postgres, error) {
	if p.binaries == nil {
		return nil, errors.New("start a replica: an external Postgres is not supported")
	}
	r := &Postgres{ephemeral: true, parents: p.parents, log: p.log, user: p.user, binaries: p.binaries}
	err := r.baseBackup(ctx, p)
	if err == nil {
		r.URL = "postgres://intents@/intents?host=" + r.run.path
		r.Source = "a streaming replica of " + p.Source
		err = r.Restart(ctx)
	}
	if err != nil {
		_ = r.Stop()
		return nil, fmt.Errorf("start a replica: %w", err)
	}
	return r, nil
}

func (p *Postgres) baseBackup(ctx context.Context, primary *Postgres) error {
	var err error
	if p.run, err = newRunDir(p.user, p.parents); err != nil {
		return err
	}
	if err := p.user.ensureTraversable(p.run.path, p.binaries.dir); err != nil {
		return err
	}
	p.data = filepath.Join(p.run.path, "data")
	ctx, cancel := context.WithTimeoutCause(ctx, initTimeout, errors.New("it took too long"))
	defer cancel()
	return Run(ctx, Command{
		Path: filepath.Join(p.binaries.dir, "pg_basebackup"),
		Args: []string{
			"-D", p.data, "-h", primary.run.path, "-U", "intents", "--write-recovery-conf", "--wal-method=stream",
			"--checkpoint=fast", "--no-sync", "--no-password",
		},
		Env: p.binaries.env, Dir: "/", user: p.user,
	})
}

// Suspend sends SIGSTOP to every process of the server, so that it does not answer and all its connections stay open. It needs
// /proc.
func (p *Postgres) Suspend() error {
	if p.process == nil || !hasProcfs() {
		return errors.New("suspend Postgres: it is external, or there is no /proc to find its processes in")
	}
	// signalAll stops the postmaster first, so that it starts no more processes.
	return p.signalAll(syscall.SIGSTOP)
}

// Resume sends SIGCONT to a suspended server.
func (p *Postgres) Resume() error { return p.signalAll(syscall.SIGCONT) }

func (p *Postgres) signalAll(sig syscall.Signal) error {
	if err := p.process.Signal(sig); err != nil {
		return err
	}
	for _, pid := range serverProcesses(p.data) {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d of Postgres: %w", pid, err)
		}
	}
	return nil
}
