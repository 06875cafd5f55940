package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"syscall"
	"time"

	"intents.internal/pkg/testkit/embedded"
)

// chainsProcess is the process of the local chains. Restart and Stop are for one goroutine at a time.
type chainsProcess struct {
	chains  []LocalChain
	quotes  string // address at which the solver answers requests for quotes
	path    string
	args    []string
	env     []string
	log     func(line string)
	process *embedded.Process

	mu  sync.Mutex
	err error // why the chains do not run
}

// Restart stops the process if it runs, starts it and returns when both chains are served.
func (c *chainsProcess) Restart(ctx context.Context) error {
	if err := c.Stop(); err != nil {
		return err
	}
	ready := make(chan struct{})
	var once sync.Once
	process, err := embedded.StartProcess(embedded.Command{Name: Chains, Path: c.path, Args: c.args, Env: c.env, Output: func(line string) {
		c.log(line)
		if isReadyLine(line) {
			once.Do(func() { close(ready) })
		}
	}})
	if err != nil {
		return err
	}
	c.process = process
	timer := time.NewTimer(readyTimeout)
	defer timer.Stop()
	select {
	case <-ready:
		return nil
	case <-process.Done():
		if err := process.Err(); err != nil {
			return err
		}
		return fmt.Errorf("%s ended while starting%s", Chains, process.Tail())
	case <-timer.C:
		return fmt.Errorf("%s: not ready within %s%s", Chains, readyTimeout, process.Tail())
	case <-ctx.Done():
		return fmt.Errorf("%s: %w%s", Chains, context.Cause(ctx), process.Tail())
	}
}

// isReadyLine reports whether a log line means that both chains are served.
func isReadyLine(line string) bool {
	var entry struct {
		Message string `json:"msg"`
	}
	return json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "ready"
}

// Done is closed when the process has ended. It is nil before the first start.
func (c *chainsProcess) Done() <-chan struct{} {
	if c.process == nil {
		return nil
	}
	return c.process.Done()
}

// PID is the process id, 0 before the first start.
func (c *chainsProcess) PID() int {
	if c.process == nil {
		return 0
	}
	return c.process.PID()
}

// Stop stops the process gracefully. It may be called more than once, before the first start, and without chains.
func (c *chainsProcess) Stop() error {
	if c == nil || c.process == nil {
		return nil
	}
	return c.process.Stop(syscall.SIGTERM, stopGrace)
}

func (c *chainsProcess) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// list returns the chains, unless they failed to be built or started.
func (c *chainsProcess) list() []LocalChain {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil
	}
	return c.chains
}
