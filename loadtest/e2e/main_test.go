// Package e2e_test has one test a journey through the service: the built shared.Binaries, started as `go run ./deploy/local` starts them, on a
// real Postgres and Redis.
package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
)

// shared is the stack that most tests share, with three gateways and two cores, and the built programs.
var shared system.Suite

// underWay counts the journeys that have not ended. The walk gives up the turn of whole stacks once there are none, since it only waits then.
var underWay sync.WaitGroup

func TestMain(m *testing.M) {
	os.Exit(shared.Run(m, 4, withDefaults(stack.Config{Gateways: 3, Cores: 2}), nil))
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
	config.Ephemeral, config.Mail = config.DatabaseURL == "", receiveMail
	config.CoreEnv = append([]string{
		"CORE_KEYS_PER_ACCOUNT=1000", "CORE_SIGN_IN_PER_IP=100000", "CORE_SIGN_UP_PER_IP=100000", "CORE_KEYS_PER_IP=100000",
		"CORE_MAILS_PER_IP=100000", "CORE_SIGN_IN_PER_ACCOUNT_AND_IP=1000",
	}, config.CoreEnv...)
	config.GatewayEnv = append([]string{"GATEWAY_LIMIT_BUDGET=2s"}, config.GatewayEnv...)
	return config
}

// startStack runs a stack of the test's own until the test ends or stops it.
func startStack(t *testing.T, config stack.Config) (s *stack.Stack, log *asynctest.Buffer) {
	t.Helper()
	return shared.Start(t, withDefaults(config))
}

// core runs a command of the built core on a stack's database with these further settings.
func core(t *testing.T, s *stack.Stack, input string, args []string, settings ...string) (out string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(shared.Binaries, "core"), args...)
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
