package stack_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/deploy/stack"
)

// withChains is a fixture with local chains.
func withChains(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.config.LocalChains = true
	return f
}

// The local chains are started with the account's key, core knows them, and they are restarted as services are.
func TestStack_LocalChains(t *testing.T) {
	t.Parallel()
	f := withChains(t)
	ready := f.log.await("the local chains are ready")
	s := f.start()
	<-ready
	<-s.Changed()
	env := s.Env()
	if len(env.LocalChains) != 2 || env.LocalChains[0].ID != "31337" || env.LocalChains[1].ID != "31338" || env.PID(stack.Chains) == 0 {
		t.Fatalf("chains %+v, processes %+v", env.LocalChains, env.Processes)
	}
	first, second := env.LocalChains[0].RPCURL, env.LocalChains[1].RPCURL
	quotes := quotesAddress(t, f.config.Data)
	for _, want := range []string{
		fmt.Sprintf("chains    | runs [-data %s -listen %s,%s -cors %s,%s -gateway %s -quotes %s] with %s\n",
			filepath.Join(f.config.Data, "chains"), strings.TrimPrefix(first, "http://"), strings.TrimPrefix(second, "http://"),
			env.GatewayURL, strings.Replace(env.GatewayURL, "127.0.0.1", "localhost", 1), env.GatewayURL, quotes, env.TestKey),
		fmt.Sprintf(`asks in 127.0.0.0/8,::1/128 the providers [{"accountRequestsPerMinute":60000,"deployment":"local","environment":"test","kind":"oif","name":"local-solver","url":"http://%s"}]`, quotes),
		fmt.Sprintf(`rpc.json {"eip155:31337":[{"requestsPerSecond":1000,"url":%q}],"eip155:31338":[{"requestsPerSecond":1000,"url":%q}]}`, first, second),
		fmt.Sprintf("did [chains import %s]\n", filepath.Join(f.config.Data, "local-chains.json")), "/deploy/chains/lists/tokens.json]\n",
	} {
		if log := f.log.String(); !strings.Contains(log, want) {
			t.Errorf("no %q in:\n%s", want, log)
		}
	}
	if diff := cmp.Diff(map[string][]string{"eip155:31337": {first}, "eip155:31338": {second}}, publicURLs(t, f.config.Data)); diff != "" {
		t.Errorf("URLs for wallets (-want +got):\n%s", diff)
	}
	for _, want := range []string{"CHAIN_31337_RPC_URL=" + first + "\n", "CHAIN_31338_RPC_URL=" + second + "\n", "CHAINS_PID="} {
		if !strings.Contains(env.String(), want) {
			t.Errorf("no %q in:\n%s", want, env)
		}
	}
	if err := s.Kill(stack.Chains); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitReady(t.Context(), stack.Chains); err != nil {
		t.Fatal(err)
	}
	if pid := s.Env().PID(stack.Chains); pid == env.PID(stack.Chains) {
		t.Errorf("the chains have their old process id %d", pid)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if log := f.log.String(); !strings.Contains(log, "chains    | stopped") {
		t.Errorf("the chains were not stopped gracefully:\n%s", log)
	}
}

// publicURLs are the URLs of the chains in the list that core imports, which has everything else from the published one.
func publicURLs(t *testing.T, data string) map[string][]string {
	t.Helper()
	type list struct{ Chains []map[string]any }
	var published, imported list
	for file, target := range map[string]*list{"../chains/lists/chains.json": &published, filepath.Join(data, "local-chains.json"): &imported} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, target)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	urls := map[string][]string{}
	for _, row := range imported.Chains {
		for _, url := range row["rpcUrls"].([]any) {
			urls[row["chainId"].(string)] = append(urls[row["chainId"].(string)], url.(string))
		}
		delete(row, "rpcUrls")
	}
	if diff := cmp.Diff(published, imported); diff != "" {
		t.Errorf("the list (-published +imported):\n%s", diff)
	}
	return urls
}

// quotesAddress is where the solver of a stack answers requests for quotes.
func quotesAddress(t *testing.T, data string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "chain-ports.json"))
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]int{}
	if err := json.Unmarshal(text, &ports); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports["quotes"])
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

// Without local chains there is nothing of them.
func TestStack_NoLocalChains(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	env := f.run()
	if diff := cmp.Diff([]stack.LocalChain(nil), env.LocalChains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
	if log := f.log.String(); strings.Contains(log, "chains    |") || strings.Contains(log, "watches the chains") {
		t.Errorf("the log names chains:\n%s", log)
	}
}
