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

// server is a process that can be started again on the same addresses. Postgres, Redis and the services are servers.
type server interface {
	// Restart starts the process and returns when it is ready; one that still runs is stopped first.
	Restart(ctx context.Context) error
	// Done is closed when the process has ended; nil when there is no process to watch.
	Done() <-chan struct{}
	PID() int
}

// A server that dies again and again is started again at ever longer intervals.
const (
	firstDelay = 250 * time.Millisecond
	lastDelay  = 2 * time.Second
	// steady is how long a server has to run for its next death to count as the first.
	steady = 2 * time.Second
)

// member is a server under supervision. Only its run uses the server while it lasts.
type member struct {
	name    string
	server  server
	log     *journal
	changed func()
	// wanted carries requests for a restart, each with where to put the outcome; nobody takes them once stopped is closed.
	wanted  chan chan error
	stopped <-chan struct{}

	mu    sync.Mutex
	pid   int
	ready chan struct{} // closed while the server is ready
}

// supervise starts the supervision of everything that runs.
func (s *Stack) supervise() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
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
	m := &member{
		name: name, server: server, log: s.log, changed: s.noteChange,
		wanted: make(chan chan error), stopped: ctx.Done(), pid: server.PID(), ready: make(chan struct{}),
	}
	close(m.ready)
	s.members = append(s.members, m)
	s.supervision.Go(func() { m.run(ctx) })
}

// run starts the server again whenever it has ended or a restart is wanted, until ctx ends.
func (m *member) run(ctx context.Context) {
	delay := time.Duration(0)
	for started := time.Now(); ; started = time.Now() {
		select {
		case <-ctx.Done():
			return
		case outcome := <-m.wanted:
			m.markDown()
			m.log.say("starting " + m.name + " again, as asked")
			err := m.restart(ctx)
			outcome <- err
			if err == nil {
				continue
			}
			m.log.say(err.Error())
		case <-m.server.Done():
			m.markDown()
			m.log.say(m.name + " has died: starting it again")
		}
		if time.Since(started) > steady {
			delay = 0
		}
		delay = m.revive(ctx, delay)
	}
}

// revive tries until the server is ready or ctx ends. It waits delay first, and returns what to wait the next time.
func (m *member) revive(ctx context.Context, delay time.Duration) time.Duration {
	for {
		if delay > 0 {
			m.log.say(fmt.Sprintf("%s keeps dying: waiting %s", m.name, delay))
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0
		}
		delay = min(max(2*delay, firstDelay), lastDelay)
		err := m.restart(ctx)
		if err == nil || ctx.Err() != nil {
			return delay
		}
		m.log.say(err.Error())
	}
}

func (m *member) restart(ctx context.Context) error {
	if err := m.server.Restart(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	m.pid = m.server.PID()
	close(m.ready)
	m.mu.Unlock()
	m.log.say(fmt.Sprintf("%s is ready again (process %d)", m.name, m.server.PID()))
	m.changed()
	return nil
}

// markDown makes AwaitReady wait.
func (m *member) markDown() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.ready:
		m.ready = make(chan struct{})
	default:
	}
}

func (m *member) state() (pid int, ready <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pid, m.ready
}

// noteChange never blocks: a change that nobody has looked at yet covers the next one.
func (s *Stack) noteChange() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Changed gets a value after a process was started again, so that Env has new process ids.
func (s *Stack) Changed() <-chan struct{} { return s.changed }

// Kill ends the named process by SIGKILL, as a crash would; the stack then starts it again. AwaitReady tells when.
func (s *Stack) Kill(name string) error {
	m, err := s.member(name)
	if err != nil {
		return err
	}
	pid, ready := m.state()
	select {
	case <-ready:
	default:
		return fmt.Errorf("kill %s: it is not running", name)
	}
	m.markDown()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", name, err)
	}
	return nil
}

// AwaitReady returns when the named process is ready, which after Kill means: again.
func (s *Stack) AwaitReady(ctx context.Context, name string) error {
	m, err := s.member(name)
	if err != nil {
		return err
	}
	_, ready := m.state()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", name, context.Cause(ctx))
	}
}

// Restart stops the named process as an operator would, with the time to finish its requests, starts it again and returns
// when it is ready.
func (s *Stack) Restart(ctx context.Context, name string) error {
	m, err := s.member(name)
	if err != nil {
		return err
	}
	outcome := make(chan error, 1)
	select {
	case m.wanted <- outcome:
		return <-outcome
	case <-m.stopped:
		return fmt.Errorf("restart %s: the stack is stopping", name)
	case <-ctx.Done():
		return fmt.Errorf("restart %s: %w", name, context.Cause(ctx))
	}
}

var errNoSuchProcess = errors.New("the stack runs no process of that name")

func (s *Stack) member(name string) (*member, error) {
	for _, m := range s.members {
		if m.name == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, errNoSuchProcess)
}
