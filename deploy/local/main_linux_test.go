package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/faultproxy"
)

// These tests run the real command on the real services, and look through /proc for what it leaves behind.

func TestLocal_Cleanup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := []string{build(t, dir)}
	goRun := []string{"go", "run", "-buildvcs=false", "."}
	flags := []string{"--no-chains", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--env-file", filepath.Join(dir, "env")}

	// A command that a caught signal's handler starts has the default one: the tests may run under nohup, which ignores it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	for _, end := range []struct {
		name    string
		command []string
		signal  syscall.Signal
		// keeps says that the env file stays: nobody was left to remove it.
		keeps bool
	}{
		{"Ctrl-C", run, syscall.SIGINT, false},
		{"closed terminal", run, syscall.SIGHUP, false},
		{"kill -9", run, syscall.SIGKILL, true},
		{"TERM to go run", goRun, syscall.SIGTERM, false},
		{"kill -9 of go run", goRun, syscall.SIGKILL, false},
	} {
		mark := "LOCAL_TEST_MARK=" + rand.Text()
		cmd := exec.CommandContext(t.Context(), end.command[0], append(end.command[1:], flags...)...)
		cmd.Env = append(os.Environ(), mark, "LOCAL_DATABASE_URL=", "LOCAL_REDIS_URL=")
		startLocal(t, cmd)
		expectHealthy(t, filepath.Join(dir, "env"))
		if err := cmd.Process.Signal(end.signal); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if end.signal == syscall.SIGINT && err != nil {
			t.Errorf("%s: %v", end.name, err)
		}
		awaitNone(t, end.name, mark)
		if _, err := os.Stat(filepath.Join(dir, "env")); (err == nil) != end.keeps {
			t.Errorf("%s: the env file: %v", end.name, err)
		}
	}
}

// build builds the command and returns its path.
func build(t *testing.T, dir string) (program string) {
	t.Helper()
	program = filepath.Join(dir, "local")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// Lists and RPC URLs are passed to core: it serves the added tokens and asks the chain's provider. The servers that a shell names for
// something else are neither used nor reached.
func TestLocal_Settings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	provider, elsewhere := faultproxy.Silent(t), faultproxy.Silent(t)
	provider.Shut()
	elsewhere.Shut()
	flags := []string{"--no-chains", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--env-file", filepath.Join(dir, "env")}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for flag, text := range map[string]string{
		"--chains": `{"chains": [{"chainId": "eip155:4711", "name": "Mine", "environment": "test",
			"nativeCurrency": {"name": "Ether", "symbol": "ETH", "decimals": 18}}]}`,
		"--tokens": `{"name": "Mine", "tokens": [{"chainId": 4711, "address": "0x5FbDB2315678afecb367f032d93F642f64180aa3", "symbol": "TST", "name": "Test", "decimals": 6}]}`,
		"--rpc":    `{"eip155:4711": ["http://` + provider.Address + `/"]}`,
	} {
		path := filepath.Join(dir, flag+".json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if path, err = filepath.Rel(here, path); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, flag, path)
	}
	file := filepath.Join(dir, "core.env")
	if err := os.WriteFile(file, []byte("CORE_DATABASE_URL=postgres://"+elsewhere.Address+"/shell\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), build(t, dir), flags...)
	cmd.Env = append(os.Environ(), "LOCAL_DATABASE_URL=", "LOCAL_REDIS_URL=", "CORE_ENV_FILE="+file,
		"DATABASE_URL=postgres://"+elsewhere.Address+"/shell", "REDIS_URL=redis://"+elsewhere.Address+"/0",
		"CORE_MIGRATE_DATABASE_URL=postgres://"+elsewhere.Address+"/shell", "CORE_READ_DATABASE_URL=postgres://"+elsewhere.Address+"/shell")
	startLocal(t, cmd)
	expectHealthy(t, filepath.Join(dir, "env"))
	expectToken(t, filepath.Join(dir, "data"), "eip155:4711", "TST")
	asynctest.Eventually(t, "core asks the provider", func() bool { return provider.Refused() > 0 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if n := elsewhere.Refused(); n > 0 {
		t.Errorf("%d connections to the servers that the shell names", n)
	}
}

// expectToken fails the test unless the stack that runs with the data directory has a chain's token.
func expectToken(t *testing.T, data, chain, symbol string) {
	t.Helper()
	env, err := readEnv(data)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(env["GATEWAY_URL"], env["TEST_KEY"])
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := c.Tokens.List(t.Context(), chain)
	if err != nil || !slices.ContainsFunc(tokens, func(token client.Token) bool { return token.Symbol == symbol }) {
		t.Errorf("tokens of %s: %v, %v", chain, tokens, err)
	}
}

func TestReadOptions_Invalid(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"start"}, {"--gateways", "many"}, {"--nonsense"}} {
		if _, err := readOptions(args); err == nil {
			t.Errorf("%v were taken", args)
		}
	}
}

// startLocal starts the command and returns once it has said that the service is ready.
func startLocal(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	var log bytes.Buffer
	ready := make(chan bool, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			log.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "The service is ready.") {
				ready <- true
			}
		}
		close(ready)
	}()
	t.Cleanup(func() {
		_ = out.Close()
		<-read
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	select {
	case ok := <-ready:
		if !ok {
			t.Fatalf("the command ended:\n%s", log.String())
		}
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		t.Fatal("the command is not ready after five minutes")
	}
}

func expectHealthy(t *testing.T, envFile string) {
	t.Helper()
	text, err := os.ReadFile(envFile)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	url := strings.TrimPrefix(first, "GATEWAY_URL=") + "/health"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		t.Errorf("/health answers %d", response.StatusCode)
	}
}

// awaitNone fails the test unless all processes with mark in their environment end within twenty seconds. Postgres and
// everything else that the command starts inherit it.
func awaitNone(t *testing.T, end, mark string) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(20 * time.Second)
	for {
		left := marked(mark)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s left behind:\n%s", end, strings.Join(left, "\n"))
		}
		<-ticker.C
	}
}

func marked(mark string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []string
	for _, file := range files {
		if environ, err := os.ReadFile(file); err == nil && bytes.Contains(environ, []byte(mark)) {
			title, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, strings.ReplaceAll(string(title), "\x00", " "))
		}
	}
	return found
}
