package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"
)

// server is a process that can be restarted on the same addresses: Postgres, Redis, a service or the local chains.
type server interface {
	// Restart stops the process if it runs, starts it and returns when it is ready.
	Restart(ctx context.Context) error
	// Done is closed when the process has ended. It is nil for a server without a process.
	Done() <-chan struct{}
	PID() int
}

// The backoff between restarts of a server that keeps exiting.
const (
	minBackoff = 250 * time.Millisecond
	maxBackoff = 2 * time.Second
	// stableAfter is how long a server must run to reset its backoff.
	stableAfter = 2 * time.Second
)

// supervisor restarts a server that exits. Only run uses the server.
type supervisor struct {
	name    string
	server  server
	log     *processLog
	changed func()
	// restarts are requests for a restart, each with the channel for its result. None are received after stopped is closed.
	restarts chan chan error
	stopped  <-chan struct{}

	mu    sync.Mutex
	pid   int
	ready chan struct{} // closed while the server is ready
}

// supervise starts the supervisors of all servers, which end with ctx.
func (s *Stack) supervise(ctx context.Context) {
	s.watch(ctx, Postgres, s.postgres)
	s.watch(ctx, Redis, s.redis)
	for _, service := range slices.Concat(s.cores, s.gateways) {
		s.watch(ctx, service.name, service)
	}
}

func (s *Stack) watch(ctx context.Context, name string, server server) {
	if server.Done() == nil {
		return
	}
	v := &supervisor{
		name: name, server: server, log: s.log, changed: s.signalChange,
		restarts: make(chan chan error), stopped: ctx.Done(), pid: server.PID(), ready: make(chan struct{}),
	}
	close(v.ready)
	s.mu.Lock()
	s.supervisors = append(s.supervisors, v)
	s.mu.Unlock()
	s.supervision.Go(func() { v.run(ctx) })
}

// run restarts the server when it has exited or a restart is requested, until ctx ends.
func (v *supervisor) run(ctx context.Context) {
	backoff := time.Duration(0)
	for started := time.Now(); ; started = time.Now() {
		select {
		case <-ctx.Done():
			return
		case result := <-v.restarts:
			v.markDown()
			v.log.print("restarting " + v.name + " on request")
			err := v.restart(ctx)
			result <- err
			if err == nil {
				continue
			}
			v.log.print(err.Error())
		case <-v.server.Done():
			v.markDown()
			v.log.print(v.name + " has exited: restarting it")
		}
		if time.Since(started) > stableAfter {
			backoff = 0
		}
		backoff = v.restartUntilReady(ctx, backoff)
	}
}

// restartUntilReady restarts the server until it is ready or ctx ends. It waits for backoff first, and returns the next one.
func (v *supervisor) restartUntilReady(ctx context.Context, backoff time.Duration) time.Duration {
	for {
		if backoff > 0 {
			v.log.print(fmt.Sprintf("%s keeps exiting: restarting it in %s", v.name, backoff))
		}
		timer := time.NewTimer(backoff)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0
		}
		backoff = min(max(2*backoff, minBackoff), maxBackoff)
		err := v.restart(ctx)
		if err == nil || ctx.Err() != nil {
			return backoff
		}
		v.log.print(err.Error())
	}
}

func (v *supervisor) restart(ctx context.Context) error {
	if err := v.server.Restart(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	v.pid = v.server.PID()
	close(v.ready)
	v.mu.Unlock()
	v.log.print(fmt.Sprintf("%s is ready again (process %d)", v.name, v.server.PID()))
	v.changed()
	return nil
}

// markDown makes AwaitReady wait.
func (v *supervisor) markDown() {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.ready:
		v.ready = make(chan struct{})
	default:
	}
}

func (v *supervisor) state() (pid int, ready <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pid, v.ready
}

// signalChange does not block: one pending value stands for all changes.
func (s *Stack) signalChange() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Changed receives a value after a restart, when Env has new process ids.
func (s *Stack) Changed() <-chan struct{} { return s.changed }

// Kill sends SIGKILL to the named process, which the stack then restarts. AwaitReady waits for that.
func (s *Stack) Kill(name string) error {
	v, err := s.supervisor(name)
	if err != nil {
		return err
	}
	pid, ready := v.state()
	select {
	case <-ready:
	default:
		return fmt.Errorf("kill %s: it is not running", name)
	}
	v.markDown()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", name, err)
	}
	return nil
}

// AwaitReady returns when the named process is ready, after Kill when it has been restarted.
func (s *Stack) AwaitReady(ctx context.Context, name string) error {
	v, err := s.supervisor(name)
	if err != nil {
		return err
	}
	_, ready := v.state()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", name, context.Cause(ctx))
	}
}

// Restart stops the named process gracefully, starts it again and returns when it is ready.
func (s *Stack) Restart(ctx context.Context, name string) error {
	v, err := s.supervisor(name)
	if err != nil {
		return err
	}
	result := make(chan error, 1)
	select {
	case v.restarts <- result:
		return <-result
	case <-v.stopped:
		return fmt.Errorf("restart %s: the stack is stopping", name)
	case <-ctx.Done():
		return fmt.Errorf("restart %s: %w", name, context.Cause(ctx))
	}
}

// allSupervisors are those of the servers that have been started so far.
func (s *Stack) allSupervisors() []*supervisor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.supervisors)
}

var errNoSuchProcess = errors.New("the stack runs no process of that name")

func (s *Stack) supervisor(name string) (*supervisor, error) {
	for _, v := range s.allSupervisors() {
		if v.name == name {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, errNoSuchProcess)
}
