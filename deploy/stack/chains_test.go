package stack_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
)

// withChains is a fixture with local chains.
func withChains(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.config.LocalChains = true
	return f
}

// The local chains are restarted as services are, and stopped gracefully. Wallets get their URLs, and may call them from the console.
func TestStack_LocalChains(t *testing.T) {
	t.Parallel()
	f := withChains(t)
	ready := f.log.await("the local chains are ready")
	s := f.start()
	<-ready
	<-s.Changed()
	env := s.Env()
	list, err := os.ReadFile(filepath.Join(f.config.Data, "local-chains.json"))
	if err != nil || len(env.LocalChains) != 2 {
		t.Fatalf("chains %+v: %v", env.LocalChains, err)
	}
	for _, chain := range env.LocalChains {
		if !strings.Contains(string(list), fmt.Sprintf("[%q]", chain.RPCURL)) {
			t.Errorf("wallets do not get %s:\n%s", chain.RPCURL, list)
		}
	}
	if log := f.log.String(); !strings.Contains(log, " -cors "+env.GatewayURL+",") {
		t.Errorf("the console may not call the chains:\n%s", log)
	}
	if err := s.Kill(stack.Chains); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitReady(t.Context(), stack.Chains); err != nil {
		t.Fatal(err)
	}
	if was, now := env.PID(stack.Chains), s.Env().PID(stack.Chains); was == 0 || now == was {
		t.Errorf("the chains have the process id %d, and had %d", now, was)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if log := f.log.String(); !strings.Contains(log, "chains    | stopped") {
		t.Errorf("the chains were not stopped gracefully:\n%s", log)
	}
}

// The next start has the same addresses, and a reset forgets the chains' data.
func TestStack_LocalChains_Data(t *testing.T) {
	t.Parallel()
	f := withPostgres(t)
	f.config.LocalChains = true
	ports := filepath.Join(f.config.Data, "chain-ports.json")
	kept := fmt.Sprintf(`{"31337":%d,"31338":%d,"quotes":%d}`+"\n", freePort(t), freePort(t), freePort(t))
	if err := os.WriteFile(ports, []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(f.config.Data, "chains", "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, chain := range f.run().LocalChains {
		if want := fmt.Sprintf("%q:%s", chain.ID, chain.RPCURL[strings.LastIndexByte(chain.RPCURL, ':')+1:]); !strings.Contains(kept, want) {
			t.Errorf("%s is not in %s", want, kept)
		}
	}
	if text, err := os.ReadFile(ports); err != nil || string(text) != kept {
		t.Errorf("the ports are now %s, %v", text, err)
	}
	if _, err := os.Stat(state); err != nil {
		t.Error(err)
	}
	f.config.Reset = true
	f.run()
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("the data of the chains after a reset: %v", err)
	}
}

// freePort is a port that an earlier process may have used.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// The URLs of the configured file are kept, and win over those of the local chains.
func TestStack_LocalChains_RPCFile(t *testing.T) {
	t.Parallel()
	f := withChains(t)
	f.config.RPCFile = filepath.Join(t.TempDir(), "rpc.json")
	if err := os.WriteFile(f.config.RPCFile, []byte(`{"eip155:1": ["http://one"], "eip155:31337": ["http://own"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run()
	text, err := os.ReadFile(filepath.Join(f.config.Data, "rpc.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), `{"eip155:1":["http://one"],"eip155:31337":["http://own"],"eip155:31338":[{`) {
		t.Errorf("RPC file %s", text)
	}
}

// The providers of quotes of the environment's file are asked, and not the solver of the local chains.
func TestStack_LocalChains_QuotesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quotes.json")
	if err := os.WriteFile(file, []byte(`[{"name": "own"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CORE_QUOTES_FILE", file)
	f := withChains(t)
	asked := f.log.await(`asks in 127.0.0.0/8,::1/128 the providers [{"name": "own"}]`)
	f.run()
	<-asked
	if log := f.log.String(); strings.Contains(log, "local-solver") {
		t.Errorf("the solver is a provider too:\n%s", log)
	}
}

// Chains that cannot start leave a line, and everything else works.
func TestStack_LocalChains_Broken(t *testing.T) {
	t.Parallel()
	f := withChains(t)
	if err := os.WriteFile(filepath.Join(f.config.Data, "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := f.log.await("stack     | there are no local chains: chains: exit status 1: the stand-in is broken\n")
	s := f.start()
	<-failed
	<-s.Changed()
	env := s.Env()
	if len(env.LocalChains) > 0 || strings.Contains(env.String(), "CHAIN") {
		t.Errorf("the environment has chains:\n%s", env)
	}
	if got := status(t, env.GatewayURL+"/v2/tokens", env.TestKey); got != 200 {
		t.Errorf("the gateway answers %d", got)
	}
}

// A database that another data directory has used has other chains: new ones are not started on it, also not later. Where this directory
// has chains, as after a reset, they go on.
func TestStack_LocalChains_OtherDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		taken, started bool
		want           string
	}{
		"new database":     {want: "the local chains are ready"},
		"other chains":     {taken: true, want: "there are no local chains: the database has the account of another data directory"},
		"chains are there": {taken: true, started: true, want: "the local chains are ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := withChains(t)
			if c.taken {
				state := []byte(`{"Passwords": {"demo@example.com": "of another"}}`)
				if err := os.WriteFile(filepath.Join(f.config.Binaries, "state"), state, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.started {
				if err := os.Mkdir(filepath.Join(f.config.Data, "chains"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				told := f.log.await(c.want)
				s := f.start()
				<-told
				if err := s.Stop(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
