package stack_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/settings"
)

func TestStack_RestartsProcesses(t *testing.T) {
	t.Parallel()
	f := withPostgres(t)
	s := f.start()
	for _, name := range []string{stack.GatewayName(1), stack.Postgres} {
		before := s.Env()
		if err := s.Kill(name); err != nil {
			t.Fatal(err)
		}
		if err := s.AwaitReady(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		<-s.Changed()
		after := s.Env()
		if after.PID(name) == before.PID(name) {
			t.Errorf("%s has its old process id", name)
		}
		if after.GatewayURL != before.GatewayURL || after.DatabaseURL != before.DatabaseURL {
			t.Errorf("the addresses changed after %s died", name)
		}
		if got := status(t, after.GatewayURL+"/v2/tokens", after.TestKey); got != http.StatusOK {
			t.Errorf("after %s died the gateway answers %d", name, got)
		}
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	log := f.log.String()
	if !strings.Contains(log, "stack     | gateway-1 has exited: restarting it\n") {
		t.Errorf("the log does not say that the gateway died:\n%s", log)
	}
	// Core may only go when no gateway needs it any more.
	if at := strings.Index(log, "gateway-1 | stopped"); at < 0 || strings.Index(log, "core      | stopped") < at {
		t.Errorf("the gateway does not stop before core:\n%s", log)
	}
}

func TestStack_RestartBackoff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.start()
	if err := os.WriteFile(f.broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waiting := f.log.await("stack     | core keeps exiting: restarting it in 500ms")
	if err := s.Kill(stack.Core); err != nil {
		t.Fatal(err)
	}
	<-waiting
	if err := os.Remove(f.broken); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitReady(t.Context(), stack.Core); err != nil {
		t.Error(err)
	}
}

func TestStack_KeepsAccount(t *testing.T) {
	t.Parallel()
	f := withPostgres(t)
	f.config.Ephemeral = false
	first := f.run()
	second := f.run()
	if diff := cmp.Diff(keysOf(first), keysOf(second)); diff != "" {
		t.Errorf("account after a restart (-want +got):\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(f.config.Data, "account.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the account's file: %v, %v", info, err)
	}
	f.config.Reset = true
	third := f.run()
	if third.TestKey == second.TestKey || third.AccountPassword == second.AccountPassword {
		t.Error("the account outlived a reset")
	}
}

func TestStart_Fails(t *testing.T) {
	t.Parallel()
	f := withPostgres(t)
	f.config.Ephemeral = false
	if err := os.WriteFile(f.broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := stack.Start(t.Context(), f.config)
	if err == nil || err.Error() != "core: exit status 1\n    the stand-in is broken" {
		t.Errorf("got %v", err)
	}
	if left := processesNaming(t, f.config.Data); len(left) > 0 {
		t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
}

func TestStart_Errors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := f.config
	taken.Listen = listener.Addr().String()
	expectError(t, taken, "cannot listen on "+taken.Listen, "such as --listen 127.0.0.1:")

	f.start()
	expectError(t, f.config, "is in use by another stack", "--data DIR")

	broken := newFixture(t).config
	if err := os.WriteFile(filepath.Join(broken.Data, "account.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expectError(t, broken, "start over with --reset")

	many := newFixture(t).config
	many.Gateways = 65
	expectError(t, many, "must be 1 to 64, not 65")
	many.Gateways, many.Cores = 1, 17
	expectError(t, many, "must be 1 to 16, not 17")
}

// A service that the shell of a user of a running stack starts reads its settings beside the variables of the stack.
func TestEnv_BesideSettings(t *testing.T) {
	t.Parallel()
	running := stack.Env{
		GatewayURLs: []string{"http://127.0.0.1:8080"}, GatewayMetricsURL: "http://127.0.0.1:9080/metrics",
		CoreURLs: []string{"http://127.0.0.1:8081"}, CoreMetricsURL: "http://127.0.0.1:9081/metrics",
		Processes: []stack.Process{{Name: stack.Core}, {Name: stack.CoreName(2)}, {Name: stack.GatewayName(1)}, {Name: stack.GatewayName(2)}},
	}
	shell := map[string]string{}
	for line := range strings.Lines(running.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		shell[name] = value
	}
	for _, prefix := range []string{"CORE_", "GATEWAY_"} {
		if _, err := settings.Read(shell, prefix, func(struct{}, *settings.Faults) {}); err != nil {
			t.Errorf("%s: %v", prefix, err)
		}
	}
}

// The processes of a stack inherit settings, but not those that name the databases of another installation.
func TestEnviron(t *testing.T) {
	t.Setenv("CORE_ENV_FILE", "of another core")
	t.Setenv("CORE_WATCH", "false")
	var inherited []string
	for _, entry := range stack.Environ() {
		if strings.HasPrefix(entry, "CORE_") {
			inherited = append(inherited, entry)
		}
	}
	if diff := cmp.Diff([]string{"CORE_WATCH=false"}, inherited); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
