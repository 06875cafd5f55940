package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	main "intents.internal/deploy/chains"
)

// asProgram makes the test binary run as the program.
const asProgram = "CHAINS_TEST_RUN"

// origin may call from a browser.
const origin = "http://127.0.0.1:8080"

// shared serves the tests that neither stop nor restart it.
var shared *program

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := main.Run(ctx, os.Args[1:], os.Stderr)
		stop()
		if err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chains-test-")
	if err == nil {
		shared, err = launch(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	shared.kill()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// program is a running program.
type program struct {
	command *exec.Cmd
	chains  map[string]*rpc.Client
	urls    map[string]string
	quotes  string // URL of the solver's quotes
}

// launch starts the program and returns once it is ready.
func launch(dir string, args ...string) (*program, error) {
	args = append([]string{"-data", dir, "-listen", "127.0.0.1:0,127.0.0.1:0", "-cors", origin}, args...)
	command := exec.Command(os.Args[0], args...) //nolint:noctx // tests end it
	command.Env = append(os.Environ(), asProgram+"=1")
	if slices.Contains(args, "-gateway") {
		command.Env = append(command.Env, "CHAINS_API_KEY=sk_test_0123456789")
	}
	out, err := command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &program{command: command, chains: map[string]*rpc.Client{}}
	lines := bufio.NewScanner(out)
	var log []byte
	for p.urls == nil && lines.Scan() {
		log = append(append(log, lines.Bytes()...), '\n')
		var line map[string]string
		if json.Unmarshal(lines.Bytes(), &line) == nil && line["msg"] == "ready" {
			p.urls = map[string]string{chainA: line["chain_31337"], chainB: line["chain_31338"]}
			p.quotes = line["quotes"]
		}
	}
	if p.urls == nil {
		return nil, fmt.Errorf("the program ended: %w\n%s", command.Wait(), log)
	}
	go func() { _, _ = io.Copy(os.Stderr, out) }() // ends with the program
	for chain, url := range p.urls {
		if p.chains[chain], err = rpc.Dial(url); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *program) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// start is launch for a test, which need not stop the program.
func start(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	p, err := launch(dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// request is one call of the JSON-RPC.
func request[T any](t *testing.T, p *program, chain, method string, params ...any) T {
	t.Helper()
	var result T
	if err := p.chains[chain].CallContext(t.Context(), &result, method, params...); err != nil {
		t.Fatalf("%s on %s: %v", method, chain, err)
	}
	return result
}

// eventually repeats a check until it returns nil, for half a minute.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

func TestRun_SIGTERM(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Wait(); err != nil {
		t.Error(err)
	}
}

func TestRun_Arguments(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no data":       {},
		"one address":   {"-data", t.TempDir(), "-listen", "127.0.0.1:0"},
		"no host":       {"-data", t.TempDir(), "-listen", ":0,:0"},
		"no port":       {"-data", t.TempDir(), "-listen", "127.0.0.1,127.0.0.1"},
		"solver no key": {"-data", t.TempDir(), "-gateway", "http://127.0.0.1:8080"},
		"more":          {"-data", t.TempDir(), "more"},
	} {
		if err := main.Run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := main.Run(t.Context(), []string{"-h"}, io.Discard); err != nil {
		t.Errorf("-h: %v", err)
	}
}

// The directory of another chain, as a version that deploys something else would have left it.
func TestRun_AnotherGenesis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, dir).kill()
	if err := errors.Join(os.RemoveAll(dir+"/31337"), os.Rename(dir+"/31338", dir+"/31337")); err != nil {
		t.Fatal(err)
	}
	p, err := launch(dir)
	if err == nil {
		p.kill()
	}
	if err == nil || !strings.Contains(err.Error(), "remove it to begin a new one") {
		t.Errorf("started on another chain's directory: %v", err)
	}
}

var errNotYet = errors.New("not yet")

// height is the number and hash of a block.
type height struct {
	Number string
	Hash   common.Hash
}
