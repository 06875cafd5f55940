package stack_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/deploy/stack"
)

func TestStart(t *testing.T) {
	t.Parallel()
	f := withPostgres(t)
	f.config.Gateways, f.config.Cores = 2, 2
	s := f.start()
	env := s.Env()
	for _, gateway := range env.GatewayURLs {
		for _, key := range []string{env.TestKey, env.LiveKey} {
			if got := status(t, gateway+"/v2/tokens", key); got != http.StatusOK {
				t.Errorf("%s answers %d", gateway, got)
			}
		}
	}
	if len(env.GatewayURLs) != 2 || env.GatewayURL != env.GatewayURLs[0] {
		t.Errorf("gateways %v, the first %s", env.GatewayURLs, env.GatewayURL)
	}
	if len(env.CoreURLs) != 2 || env.CoreURL != env.CoreURLs[0] {
		t.Errorf("cores %v, the first %s", env.CoreURLs, env.CoreURL)
	}
	var names []string
	for _, process := range env.Processes {
		names = append(names, process.Name)
	}
	if diff := cmp.Diff([]string{"postgres", "core", "core-2", "gateway-1", "gateway-2"}, names); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, process := range env.Processes {
		if syscall.Kill(process.PID, 0) == nil {
			t.Errorf("%s is still there", process.Name)
		}
	}
	// Core may only go when no gateway needs it any more.
	log := f.log.String()
	for _, core := range []string{"core      | stopped", "core-2    | stopped"} {
		for _, gateway := range []string{"gateway-1 | stopped", "gateway-2 | stopped"} {
			if at := strings.Index(log, gateway); at < 0 || strings.Index(log, core) < at {
				t.Errorf("%q is not before %q in:\n%s", gateway, core, log)
			}
		}
	}
}

func TestStack_RestartsProcesses(t *testing.T) {
	t.Parallel()
	f := withPostgres(t)
	s := f.start()
	for _, name := range []string{stack.Core, stack.GatewayName(1), stack.Postgres} {
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
	if err := s.Restart(t.Context(), stack.Core); err != nil {
		t.Error(err)
	}
	if err := s.Kill("nothing"); err == nil {
		t.Error("a process that does not exist was killed")
	}
	if log := f.log.String(); !strings.Contains(log, "stack     | core has exited: restarting it\n") {
		t.Errorf("the log does not say that core died:\n%s", log)
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

// On a busy machine the account may be created though the answer does not come in time.
func TestStart_LostAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.config.CoreEnv = append(f.config.CoreEnv, "STAND_IN_LATE=yes")
	if env := f.run(); env.AccountEmail != "demo@example.com" || env.TestKey == "" {
		t.Errorf("the account is %+v", env)
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

func TestEnv_String(t *testing.T) {
	t.Parallel()
	env := stack.Env{
		GatewayURL:  "http://127.0.0.1:8080",
		GatewayURLs: []string{"http://127.0.0.1:8080", "http://127.0.0.1:20001"},
		CoreURL:     "http://127.0.0.1:30001",
		CoreURLs:    []string{"http://127.0.0.1:30001", "http://127.0.0.1:30002"},
		DatabaseURL: "postgres://a@b/c?x=1&y='2'",
		Processes:   []stack.Process{{Name: "core", PID: 7}, {Name: "core-2", PID: 9}, {Name: "gateway-1", PID: 8}},
	}
	want := `GATEWAY_URL=http://127.0.0.1:8080
GATEWAY_URLS=http://127.0.0.1:8080,http://127.0.0.1:20001
CORE_URL=http://127.0.0.1:30001
CORE_URLS=http://127.0.0.1:30001,http://127.0.0.1:30002
TEST_KEY=
LIVE_KEY=
ACCOUNT_EMAIL=
ACCOUNT_PASSWORD=
DATABASE_URL='postgres://a@b/c?x=1&y='\''2'\'''
REDIS_URL=
GATEWAY_METRICS_URL=
CORE_METRICS_URL=
CORE_PID=7
CORE_2_PID=9
GATEWAY_1_PID=8
`
	if diff := cmp.Diff(want, env.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}
