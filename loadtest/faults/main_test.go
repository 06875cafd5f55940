// Package faults_test breaks what the service depends on, under load, and checks what the service promises then. Everything is a
// real process: the built gateway and core, Postgres and Redis. Toxiproxy breaks connections.
//
//	go test ./loadtest/faults -v -count=1 -timeout=60m -parallel 1 -args -strict
//
// judges every latency by the promised time itself and repeats faults as often as promised; it is for a machine with nothing else to
// do. Without -strict promised times are multiplied, and latencies are not judged while the machine delays even /v2/health. What
// clients were answered is judged always.
package faults_test

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

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// secret is what gateways and cores share.
const secret = "the secret that gateways and core share in these tests"

var strict = flag.Bool("strict", false, "judge every latency by the promised time itself, and repeat faults as often as promised; for a machine with nothing else to do")

// allowance multiplies all promised times without -strict: these tests run in parallel on shared processors.
const allowance = 5

// within is a promised time with the allowance.
func within(promise time.Duration) time.Duration {
	if *strict {
		return promise
	}
	return allowance * promise
}

// times is how often a fault is repeated.
func times(usual, promised int) int {
	if *strict {
		return promised
	}
	return usual
}

// shared is what all tests use and none may stop: core with its Postgres, and the programs.
var shared struct {
	stack    *stack.Stack
	binaries string
	database *database
}

func TestMain(m *testing.M) {
	// Most of these tests wait for other processes. Where CI=true fewer run at a time, so that a slow machine delays Postgres less.
	_ = flag.Set("test.parallel", "5")
	if os.Getenv("CI") == "true" {
		_ = flag.Set("test.parallel", "3")
	}
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	data, err := os.MkdirTemp("", "intents-faults-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(data) }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var log asynctest.Buffer
	shared.binaries = filepath.Join(data, "bin")
	if err := stack.Build(ctx, "", shared.binaries, func(line string) { fmt.Fprintln(&log, line) }); err != nil {
		return 1, fmt.Errorf("%w\n%s", err, log.String())
	}
	turn, err := embedded.AwaitTurn(ctx, "whole-stacks", func() { fmt.Fprintln(os.Stderr, "waiting for another test of whole stacks to end") })
	if err != nil {
		return 1, err
	}
	defer turn.Unlock()
	shared.stack, err = stack.Start(ctx, stack.Config{
		Data: data, Binaries: shared.binaries, Listen: "127.0.0.1:0", Ephemeral: true, InProcessRedis: true, Log: &log,
		CoreEnv: []string{"CORE_GATEWAY_SECRET=" + secret}, GatewayEnv: []string{"GATEWAY_CORE_SECRET=" + secret},
	})
	if err != nil {
		return 1, fmt.Errorf("%w\n%s", err, log.String())
	}
	shared.database = &database{url: shared.stack.Env().DatabaseURL}
	if shared.database.owner, err = ownerOf(ctx, shared.stack.Env()); err != nil {
		return 1, errors.Join(err, shared.stack.Stop())
	}
	code = m.Run()
	if err := shared.stack.Stop(); err != nil {
		return 1, err
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the log of the shared stack:\n"+log.String())
	}
	return code, nil
}

// ownerOf returns the account of a stack's demo keys.
func ownerOf(ctx context.Context, env stack.Env) (owner uuid.UUID, err error) {
	conn, err := pgx.Connect(ctx, env.DatabaseURL)
	if err != nil {
		return owner, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, `SELECT account_id FROM api_keys WHERE start = $1`, env.TestKey[:12]).Scan(&owner)
	return owner, err
}

// judge fails a test for a latency, with late, unless the machine was too busy. What clients were answered is judged with Errorf.
type judge struct {
	testing.TB
	busy bool
}

// newJudge takes the samples of the baseline, which show whether the machine itself was slow.
func newJudge(tb testing.TB, baseline samples) judge {
	tb.Helper()
	return judge{tb, !*strict && baseline.quantile(1) > 250*time.Millisecond}
}

func (j judge) late(format string, args ...any) {
	j.Helper()
	if j.busy {
		j.Logf(format+" (not judged: this machine delayed even /v2/health)", args...)
		return
	}
	j.Errorf(format, args...)
}

// sleep lets load run for a while.
func sleep(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// every calls do at once and then in this interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// freeAddress is a host:port where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(port)
}
