// Package faults_test breaks what the service depends on, under load, and checks what the service promises then. Everything is a
// real process: the built gateway and core, Postgres and Redis. pkg/testkit/faultproxy breaks connections.
//
//	go test ./loadtest/faults -v -count=1 -timeout=60m -parallel 1 -args -strict
//
// judges every latency by the promised time itself and repeats faults as often as promised; it is for a machine with nothing else to
// do. Without -strict promised times are multiplied, and latencies are not judged while the machine delays even /v2/health. What
// clients were answered is judged always.
package faults_test

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
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
	system.Suite
	database *database
}

func TestMain(m *testing.M) {
	parallel := 5
	if os.Getenv("CI") == "true" {
		parallel = 3 // so that a slow machine delays Postgres less
	}
	config := stack.Config{
		Ephemeral: true, InProcessRedis: true,
		CoreEnv: []string{"CORE_GATEWAY_SECRET=" + secret}, GatewayEnv: []string{"GATEWAY_CORE_SECRET=" + secret},
	}
	os.Exit(shared.Run(m, parallel, config, func(ctx context.Context) (err error) {
		shared.database = &database{url: shared.Stack.Env().DatabaseURL}
		shared.database.owner, err = ownerOf(ctx, shared.Stack.Env())
		return err
	}))
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
