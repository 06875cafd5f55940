// Package e2e_test walks the service from outside: the built binaries, started as `go run ./deploy/local` starts them, on a
// real Postgres and Redis.
package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
)

// running is the one stack that the tests of this package share, with three gateways, and binaries is where its programs
// were built.
var (
	running  *stack.Stack
	binaries string
)

// oneAddress lets one address do what many would.
var oneAddress = []string{"CORE_SIGN_IN_PER_IP=100000", "CORE_SIGN_UP_PER_IP=100000", "CORE_KEYS_PER_IP=100000", "CORE_MAILS_PER_IP=100000"}

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == curlName {
		if err := curl(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "curl:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "5") // most of these tests wait for other processes; -parallel overrides it
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
	running, err = stack.Start(ctx, stack.Config{
		Data: data, Binaries: binaries, Listen: "127.0.0.1:0", Gateways: 3, Ephemeral: true, Log: &log,
		Mail: receiveMail,
		// All tests come from one address.
		CoreEnv: append([]string{"CORE_KEYS_PER_ACCOUNT=1000"}, oneAddress...),
		// What is tested is that the limit is exact; a busy machine must not look like a slow Redis.
		GatewayEnv: []string{"GATEWAY_LIMIT_BUDGET=2s"},
	})
	if err != nil {
		return 1, fmt.Errorf("%w\n%s", err, log.String())
	}
	code = m.Run()
	if err := running.Stop(); err != nil {
		return 1, err
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the stack's log:\n"+log.String())
	}
	return code, nil
}

// lockedBuffer is the name that prometheus_test.go has for it.
type lockedBuffer = asynctest.Buffer

// client speaks to the service as a browser or an API client would, and holds each answer to openapi.json.
type client struct {
	t    *testing.T
	base string
	key  string
	http *http.Client
}

// apiClient has an API key, browserClient a cookie jar.
func apiClient(t *testing.T, key string) *client {
	t.Helper()
	return &client{t: t, base: running.Env().GatewayURL, key: key, http: &http.Client{Timeout: 20 * time.Second, Transport: checked{t}}}
}

func browserClient(t *testing.T) *client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, base: running.Env().GatewayURL, http: &http.Client{Timeout: 20 * time.Second, Transport: checked{t}, Jar: jar}}
}

// answer is a response read to its end.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
}

func (c *client) do(method, path string, body any, headers ...string) answer {
	c.t.Helper()
	a, err := c.try(method, path, body, headers...)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// try is do for goroutines and for requests that may fail. headers are names and values in turn.
func (c *client) try(method, path string, body any, headers ...string) (answer, error) {
	var sent io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		sent = bytes.NewReader([]byte(b))
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			return answer{}, err
		}
		sent = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, sent)
	if err != nil {
		return answer{}, err
	}
	if c.key != "" {
		request.Header.Set("X-Api-Key", c.key)
	}
	if sent != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return answer{Status: response.StatusCode, Header: response.Header, Body: read}, err
}

// expect fails the test unless the answer has this status, and decodes its body.
func expect[T any](t *testing.T, a answer, status int) (value T) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	if err := json.Unmarshal(a.Body, &value); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	return value
}

// core runs the built core binary's command on the stack's database.
func core(t *testing.T, input string, args ...string) string {
	t.Helper()
	return coreOn(t, running.Env().DatabaseURL, input, args...)
}

func coreOn(t *testing.T, databaseURL, input string, args ...string) string {
	t.Helper()
	binary := filepath.Join(binaries, "core")
	command := exec.CommandContext(t.Context(), binary, args...)
	command.Env = append(stack.Environ(), "CORE_DATABASE_URL="+databaseURL)
	command.Stdin = bytes.NewReader([]byte(input))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("core %v: %v\n%s", args, err, out)
	}
	return string(out)
}
