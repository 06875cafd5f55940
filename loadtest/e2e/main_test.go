// Package e2e_test has one test a journey through the service: the built binaries, started as `go run ./deploy/local` starts them, on a
// real Postgres and Redis.
package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// running is the stack that most tests share, with three gateways and two cores. binaries is where its programs were built.
var (
	running  *stack.Stack
	binaries string
)

// turn is the turn of whole stacks. The walk gives it up as soon as no other journey is underWay, since it only waits then.
var (
	turn     *embedded.Lock
	underWay sync.WaitGroup
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // most of these tests wait for other processes; -parallel overrides it
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	data, err := os.MkdirTemp("", "intents-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(data) }()
	var log asynctest.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	binaries = filepath.Join(data, "bin")
	if err := stack.Build(ctx, "", binaries, func(line string) { fmt.Fprintln(&log, line) }); err != nil {
		return 1, fmt.Errorf("%w\n%s", err, log.String())
	}
	turn, err = embedded.AwaitTurn(ctx, "whole-stacks", func() { fmt.Fprintln(os.Stderr, "waiting for another test of whole stacks to end") })
	if err != nil {
		return 1, err
	}
	defer turn.Unlock()
	running, err = stack.Start(ctx, withDefaults(stack.Config{Data: data, Gateways: 3, Cores: 2, Log: &log}))
	if err != nil {
		return 1, fmt.Errorf("%w\n%s", err, log.String())
	}
	code = m.Run()
	if err := running.Stop(); err != nil {
		return 1, err
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the shared stack's log:\n"+log.String())
	}
	return code, nil
}

// journey counts a test as underWay until it has ended. It must be called before t.Parallel: no other test runs yet.
func journey(t *testing.T) {
	t.Helper()
	underWay.Add(1)
	t.Cleanup(underWay.Done)
}

// withDefaults completes the configuration of a stack for tests. All of them come from one address, some sign in to one account again and
// again, and a busy machine must not look like a slow Redis.
func withDefaults(config stack.Config) stack.Config {
	config.Binaries, config.Listen, config.Ephemeral, config.Mail = binaries, "127.0.0.1:0", config.DatabaseURL == "", receiveMail
	config.CoreEnv = append([]string{
		"CORE_KEYS_PER_ACCOUNT=1000", "CORE_SIGN_IN_PER_IP=100000", "CORE_SIGN_UP_PER_IP=100000", "CORE_KEYS_PER_IP=100000",
		"CORE_MAILS_PER_IP=100000", "CORE_SIGN_IN_PER_ACCOUNT_AND_IP=1000",
	}, config.CoreEnv...)
	config.GatewayEnv = append([]string{"GATEWAY_LIMIT_BUDGET=2s"}, config.GatewayEnv...)
	return config
}

// startStack runs a stack of the test's own until the test ends or stops it. Its log is shown where the test fails.
func startStack(t *testing.T, config stack.Config) (s *stack.Stack, log *asynctest.Buffer) {
	t.Helper()
	log = &asynctest.Buffer{}
	config.Log = log
	if config.Data == "" {
		config.Data = t.TempDir()
	}
	s, err := stack.Start(t.Context(), withDefaults(config))
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("the stack's log:\n" + log.String())
		}
	})
	return s, log
}

// startProcess runs a program until the test ends. Its output is shown where the test fails.
func startProcess(t *testing.T, command embedded.Command) (*embedded.Process, *asynctest.Buffer) {
	t.Helper()
	log := &asynctest.Buffer{}
	command.Output = func(line string) { fmt.Fprintln(log, line) }
	process, err := embedded.StartProcess(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", command.Path, log.String())
		}
	})
	return process, log
}

// without skips a test for want of something, except where everything is supposed to run.
func without(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// freePort is a port of 127.0.0.1 that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// core runs a command of the built core on a stack's database with these further settings.
func core(t *testing.T, s *stack.Stack, input string, args []string, settings ...string) (out string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(binaries, "core"), args...)
	command.Env = append(stack.Environ(), append(slices.Clip(settings), "CORE_DATABASE_URL="+s.Env().DatabaseURL)...)
	command.Stdin = bytes.NewReader([]byte(input))
	text, err := command.CombinedOutput()
	return string(text), err
}

// mustCore is core for commands that must succeed.
func mustCore(t *testing.T, s *stack.Stack, input string, args ...string) string {
	t.Helper()
	out, err := core(t, s, input, args)
	if err != nil {
		t.Fatalf("core %v: %v\n%s", args, err, out)
	}
	return out
}

// execute changes a database behind core's back.
func execute(t *testing.T, databaseURL, sql string, values ...any) {
	t.Helper()
	conn := connect(t, databaseURL)
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql, values...); err != nil {
		t.Fatal(err)
	}
}

// queryRow reads the one value that sql selects from a database.
func queryRow[T any](t *testing.T, databaseURL, sql string, values ...any) (value T) {
	t.Helper()
	conn := connect(t, databaseURL)
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), sql, values...).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func connect(t *testing.T, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// eventually does something until it succeeds, for a minute at most.
func eventually(t *testing.T, do func() error) {
	t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
