// Package system starts the built service for tests of the whole: the programs with their Postgres and Redis, single processes that a test
// stops and kills, clients that send requests, receivers of webhooks, and a Prometheus that scrapes all of it.
//
// The journeys (loadtest/e2e) and the faults (loadtest/faults) are written with it.
package system

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// startTimeout is how long the build, the turn and the start of the shared stack may take together.
const startTimeout = 10 * time.Minute

// Suite is what the tests of a package share.
type Suite struct {
	// Binaries is the directory of the built programs, Stack a running stack that no test may stop.
	Binaries string
	Stack    *stack.Stack
	// Turn is the turn of whole stacks: the packages that start one wait for each other, so that a machine runs one at a time.
	Turn *embedded.Lock
}

// Run builds the programs, starts the shared stack and runs the tests, as many at a time as parallel says unless -parallel does. It returns
// the exit code. Config.Data, Binaries, Listen and Log are Run's. started, which may be nil, is called once the stack runs.
func (s *Suite) Run(m *testing.M, parallel int, config stack.Config, started func(context.Context) error) (code int) {
	_ = flag.Set("test.parallel", strconv.Itoa(parallel)) // most tests wait for other processes
	flag.Parse()
	var log asynctest.Buffer
	code, err := s.run(m, config, started, &log)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the shared stack's log:\n"+log.String())
	}
	return code
}

func (s *Suite) run(m *testing.M, config stack.Config, started func(context.Context) error, log *asynctest.Buffer) (code int, err error) {
	config.Data, err = os.MkdirTemp("", "intents-system-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(config.Data) }()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s.Binaries = filepath.Join(config.Data, "bin")
	if err := stack.Build(ctx, "", s.Binaries, func(line string) { fmt.Fprintln(log, line) }); err != nil {
		return 1, err
	}
	s.Turn, err = embedded.AwaitTurn(ctx, "whole-stacks", func() { fmt.Fprintln(os.Stderr, "waiting for another test of whole stacks to end") })
	if err != nil {
		return 1, err
	}
	defer s.Turn.Unlock()
	config.Binaries, config.Listen, config.Log = s.Binaries, "127.0.0.1:0", log
	if s.Stack, err = stack.Start(ctx, config); err != nil {
		return 1, err
	}
	if started != nil {
		if err := started(ctx); err != nil {
			return 1, errors.Join(err, s.Stack.Stop())
		}
	}
	code = m.Run()
	if err := s.Stack.Stop(); err != nil {
		return 1, err
	}
	return code, nil
}

// Start runs a stack of the test's own until the test ends or stops it. Its log is printed if the test fails. Config.Binaries, Listen and
// Log are Start's, and an empty Data is a directory of the test's.
func (s *Suite) Start(t *testing.T, config stack.Config) (own *stack.Stack, log *asynctest.Buffer) {
	t.Helper()
	log = &asynctest.Buffer{}
	config.Binaries, config.Listen, config.Log = s.Binaries, "127.0.0.1:0", log
	if config.Data == "" {
		config.Data = t.TempDir()
	}
	own, err := stack.Start(t.Context(), config)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("the stack's log:\n" + log.String())
		}
	})
	return own, log
}
