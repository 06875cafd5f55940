// Package faults_test breaks what the service stands on, under load, and holds it to what it promises then. Everything is
// a real process: the built gateway and core, Postgres and Redis; where the network must misbehave, a TCP proxy does.
//
//	go test ./loadtest/faults -v -count=1 -timeout=60m -args -strict
//
// prints a table of what was measured, on a machine with nothing else to do: the nightly run. Without -strict all times have an
// allowance, and latencies are not judged while the machine keeps even /v2/health waiting, which the run says. What clients were
// answered is judged either way.
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

// secret is what gateways and core share.
const secret = "the secret that gateways and core share in these tests"

var strict = flag.Bool("strict", false, "judge every latency, by the promised time itself, and repeat faults as often as promised; for a machine with nothing else to do")

// crowded is the allowance on all times, the gateways' own budgets among them: these tests run beside all others, on two
// shared cores, under the race detector, where a process may wait for a core as long as the promise is.
const crowded = 5

// full reports whether tests repeat their fault as often as the promise is made for, which takes minutes: in continuous
// integration and with -strict.
func full() bool { return *strict || os.Getenv("CI") == "true" }

// within is a time with the allowance, unless -strict was given.
func within(promise time.Duration) time.Duration {
	if *strict {
		return promise
	}
	return crowded * promise
}

// shared is what all tests use and none may stop: core with its Postgres, and the programs. A test that stops core starts a
// stack of its own.
var shared struct {
	stack    *stack.Stack
	binaries string
	database *database
}

func TestMain(m *testing.M) {
	parallel := "5" // most of these tests wait for other processes; -parallel overrides it
	if os.Getenv("CI") == "true" {
		parallel = "3" // with the race detector, five keep two processors so busy that Postgres is late for core's lock_timeout
	}
	_ = flag.Set("test.parallel", parallel)
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
	fmt.Print(outcomes.table(), outcomes.unjudged())
	if err := shared.stack.Stop(); err != nil {
		return 1, err
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the log of core and what it stands on:\n"+log.String())
	}
	return code, nil
}

// ownerOf is the account of a stack's demo keys.
func ownerOf(ctx context.Context, env stack.Env) (owner uuid.UUID, err error) {
	conn, err := pgx.Connect(ctx, env.DatabaseURL)
	if err != nil {
		return owner, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, `SELECT account_id FROM api_keys WHERE start = $1`, env.TestKey[:12]).Scan(&owner)
	return owner, err
}

// pass lets load run for a while.
func pass(t *testing.T, span time.Duration) {
	t.Helper()
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// freeAddress is where nobody listens, host:port.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(port)
}
