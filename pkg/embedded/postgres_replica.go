package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
)

// StartReplica starts a streaming replica of p: a copy that pg_basebackup makes of the running server over its socket, and
// that follows it by the same way, read-only, until somebody promotes it. Like every ephemeral server it is gone with Stop. It
// returns when the replica accepts connections; ctx bounds the start only.
func (p *Postgres) StartReplica(ctx context.Context) (*Postgres, error) {
	if p.binaries == nil {
		return nil, errors.New("start a replica: a Postgres that was handed in is not this program's to copy")
	}
	r := &Postgres{ephemeral: true, parents: p.parents, log: p.log, owner: p.owner, binaries: p.binaries}
	err := r.copyFrom(ctx, p)
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

func (p *Postgres) copyFrom(ctx context.Context, primary *Postgres) error {
	var err error
	if p.run, err = newRunDir(p.owner, p.parents); err != nil {
		return err
	}
	if err := p.owner.reach(p.run.path, p.binaries.dir); err != nil {
		return err
	}
	p.data = filepath.Join(p.run.path, "data")
	ctx, cancel := context.WithTimeoutCause(ctx, clusterTimeout, errors.New("it took too long"))
	defer cancel()
	return Run(ctx, Command{
		Path: filepath.Join(p.binaries.dir, "pg_basebackup"),
		Args: []string{
			"-D", p.data, "-h", primary.run.path, "-U", "intents", "--write-recovery-conf", "--wal-method=stream",
			"--checkpoint=fast", "--no-sync", "--no-password",
		},
		Env: p.binaries.env, Dir: "/", owner: p.owner,
	})
}

// Suspend stops every process of the server where it stands, so that it is silent and all its connections stay open. It
// needs /proc.
func (p *Postgres) Suspend() error {
	if p.process == nil || !hasProc() {
		return errors.New("suspend Postgres: it is not this program's own, or there is no /proc to find its processes in")
	}
	// The first one first: then no more are made.
	return p.signalAll(syscall.SIGSTOP)
}

// Resume lets a suspended server go on.
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
