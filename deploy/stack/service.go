package stack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"intents.internal/pkg/embedded"
)

const (
	readyTimeout = time.Minute
	// stopGrace is longer than the services' own limit for requests in flight.
	stopGrace  = 20 * time.Second
	jobTimeout = 5 * time.Minute
)

// direct never goes through a proxy, which the environment may name for other hosts.
var direct = &http.Client{Transport: &http.Transport{}}

// service is one process of core or gateway. It is used by one goroutine at a time.
type service struct {
	name    string
	program string
	path    string
	args    []string
	env     []string
	listen  string
	ops     string
	log     func(line string)
	process *embedded.Process
}

// Restart starts the process and returns when it is ready; one that still runs is stopped first.
func (s *service) Restart(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return err
	}
	process, err := embedded.StartProcess(embedded.Command{Name: s.name, Path: s.path, Args: s.args, Env: s.env, Output: s.log})
	if err != nil {
		return err
	}
	s.process = process
	return s.awaitReady(ctx)
}

// awaitReady polls /readyz, and gives up when the process ends.
func (s *service) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		missing := s.notReady(ctx)
		if missing == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-s.process.Done():
			if err := s.process.Err(); err != nil {
				return err
			}
			return fmt.Errorf("%s ended while starting%s", s.name, s.process.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w%s", s.name, context.Cause(ctx), missing, s.process.Tail())
		}
	}
}

// notReady is nil when the service says that it is ready and can be reached, else what it or the connection says instead.
func (s *service) notReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.opsURL()+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := direct.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %d %s", response.StatusCode, strings.TrimSpace(string(body)))
	}
	// A service may open its two listeners in any order.
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", reachable(s.listen))
	if err != nil {
		return err
	}
	return conn.Close()
}

// job runs the program once with other arguments, to its end.
func (s *service) job(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, jobTimeout, fmt.Errorf("gave up after %s", jobTimeout))
	defer cancel()
	name := s.name + " " + strings.Join(args, " ")
	return embedded.Run(ctx, embedded.Command{Name: name, Path: s.path, Args: args, Env: s.env, Output: s.log})
}

func (s *service) url() string    { return "http://" + reachable(s.listen) }
func (s *service) opsURL() string { return "http://" + reachable(s.ops) }

func urls(services []*service) []string {
	all := make([]string, len(services))
	for n, service := range services {
		all[n] = service.url()
	}
	return all
}

// PID is the process id; 0 before the first start.
func (s *service) PID() int {
	if s.process == nil {
		return 0
	}
	return s.process.PID()
}

// Done is closed when the process has ended; nil before the first start.
func (s *service) Done() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.Done()
}

// Stop lets the process finish its requests and end. Calling it again, or before the first start, is fine.
func (s *service) Stop() error {
	if s.process == nil {
		return nil
	}
	return s.process.Stop(syscall.SIGTERM, stopGrace)
}
