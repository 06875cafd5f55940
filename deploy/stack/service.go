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

	"intents.internal/pkg/testkit/embedded"
)

const (
	// readyTimeout is far more than a start takes, because a busy machine takes long.
	readyTimeout = 3 * time.Minute
	// stopGrace is longer than the services' drain timeouts.
	stopGrace      = 20 * time.Second
	commandTimeout = 5 * time.Minute
)

// noProxy is a client that ignores the proxies of the environment.
var noProxy = &http.Client{Transport: &http.Transport{}}

// service is one process of core or gateway. It is for one goroutine at a time.
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

// Restart stops the process if it runs, starts it and returns when it is ready.
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

// awaitReady polls /readyz until the service is ready or its process ends.
func (s *service) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		missing := s.checkReady(ctx)
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

// checkReady returns nil if the service is ready and listens, else why not.
func (s *service) checkReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.opsURL()+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := noProxy.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz: status %d: %s", response.StatusCode, strings.TrimSpace(string(body)))
	}
	// The operations listener may be open before the other one.
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", dialAddress(s.listen))
	if err != nil {
		return err
	}
	return conn.Close()
}

// runOnce runs the program with other arguments until it exits.
func (s *service) runOnce(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTimeout, fmt.Errorf("gave up after %s", commandTimeout))
	defer cancel()
	name := s.name + " " + strings.Join(args, " ")
	return embedded.Run(ctx, embedded.Command{Name: name, Path: s.path, Args: args, Env: s.env, Output: s.log})
}

// url is the base URL of the service. A gateway on a loopback address is at localhost, because browsers know no passkeys at IP addresses
// (WebAuthn level 3, section 5.1.2).
func (s *service) url() string {
	address := dialAddress(s.listen)
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && s.program == "gateway" && ip != nil && ip.IsLoopback() {
		address = net.JoinHostPort("localhost", port)
	}
	return "http://" + address
}

func (s *service) opsURL() string { return "http://" + dialAddress(s.ops) }

func urls(services []*service) []string {
	all := make([]string, len(services))
	for n, service := range services {
		all[n] = service.url()
	}
	return all
}

// PID is the process id, 0 before the first start.
func (s *service) PID() int {
	if s.process == nil {
		return 0
	}
	return s.process.PID()
}

// Done is closed when the process has ended. It is nil before the first start.
func (s *service) Done() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.Done()
}

// Stop stops the process gracefully. It may be called more than once, and before the first start.
func (s *service) Stop() error {
	if s.process == nil {
		return nil
	}
	return s.process.Stop(syscall.SIGTERM, stopGrace)
}
