package command_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/command"
	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/freeport"
)

// environment is what a gateway before this core needs.
func environment(t *testing.T, core *coretest.Core) map[string]string {
	t.Helper()
	redis, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Stop() })
	return map[string]string{
		"GATEWAY_LISTEN":      "127.0.0.1:0",
		"GATEWAY_OPS_LISTEN":  "127.0.0.1:0",
		"GATEWAY_CORE_URL":    core.URL.String(),
		"GATEWAY_CORE_SECRET": coretest.Secret.Reveal(),
		"GATEWAY_REDIS_URL":   redis.URL,
		"GATEWAY_DRAIN_DELAY": "100ms",
		"GATEWAY_ACCESS_LOG":  "false",
	}
}

func newGateway(t *testing.T, environment map[string]string) *command.Gateway {
	t.Helper()
	config, err := command.ParseConfig(environment)
	if err != nil {
		t.Fatal(err)
	}
	g, err := command.New(t.Context(), config, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func get(t *testing.T, url, key string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		request.Header.Set("x-api-key", key)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestGateway_Lifecycle(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		fmt.Fprint(w, "late, but whole")
	})
	core.ChainsDown.Store(true)
	g := newGateway(t, environment(t, core))
	ctx, term := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	ops := "http://" + g.OperationsAddress()

	asynctest.Eventually(t, "all but the chains is there", func() bool {
		_, body := get(t, ops+"/readyz", "")
		return strings.Contains(body, "core's chains have not been loaded yet") && !strings.Contains(body, "key_changes")
	})
	core.ChainsDown.Store(false)
	asynctest.Eventually(t, "it is ready", func() bool { status, _ := get(t, ops+"/readyz", ""); return status == http.StatusOK })

	answered := make(chan string, 1)
	key := core.AddKey(network.Test).Reveal()
	go func() {
		status, body := get(t, "http://"+g.Address()+"/v2/tokens", key)
		answered <- fmt.Sprint(status, " ", body)
	}()
	<-arrived
	term()
	asynctest.Eventually(t, "readiness fails", func() bool { status, _ := get(t, ops+"/readyz", ""); return status == http.StatusServiceUnavailable })
	close(release)
	if got := <-answered; got != "200 late, but whole" {
		t.Errorf("the request in flight: %s", got)
	}
	if err := errors.Join(<-ran, g.Close()); err != nil {
		t.Error(err)
	}
	if conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", g.Address()); err == nil {
		_ = conn.Close()
		t.Error("the port is still served")
	}
}

// The interval is so long that only the end can report, and core's first reply is lost.
func TestGateway_ReportsUsageAtShutdown(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	core := coretest.Start(t, func(http.ResponseWriter, *http.Request) { <-release })
	core.LostReplies.Store(1)
	variables := environment(t, core)
	variables["GATEWAY_USAGE_INTERVAL"] = "1m"
	g := newGateway(t, variables)
	ctx, term := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()

	key := core.AddKey(network.Test)
	answered := make(chan int, 1)
	go func() {
		status, _ := get(t, "http://"+g.Address()+"/v2/tokens", key.Reveal())
		answered <- status
	}()
	asynctest.Eventually(t, "the request has arrived", func() bool { return len(core.Requests()) == 1 })
	term()
	asynctest.Eventually(t, "it drains", func() bool {
		status, _ := get(t, "http://"+g.OperationsAddress()+"/readyz", "")
		return status == http.StatusServiceUnavailable
	})
	close(release)
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the request in flight: %d", status)
	}
	if err := errors.Join(<-ran, g.Close()); err != nil {
		t.Error(err)
	}
	want := map[string]coretest.Counts{core.Key(key).KeyID: {Accepted: 1}}
	if diff := cmp.Diff(want, core.Usage()); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if reports := core.Reports(); len(reports) < 2 {
		t.Errorf("no report came again after its reply was lost: %+v", reports)
	}
}

func TestGateway_PortInUse(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	variables := environment(t, coretest.Start(t, nil))
	variables["GATEWAY_LISTEN"] = listener.Addr().String()
	config, err := command.ParseConfig(variables)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := command.New(t.Context(), config, slog.New(slog.DiscardHandler), nil); err == nil || !strings.Contains(err.Error(), "GATEWAY_LISTEN") {
		t.Errorf("error: %v", err)
	}
}

// build makes the program.
func build(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "gateway")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return path
}

// The program itself: TERM ends it with 0 after the requests in flight, and a bad setting with 1 before it listens.
func TestGateway_ExitStatus(t *testing.T) {
	t.Parallel()
	program := build(t)
	core := coretest.Start(t, nil)
	variables := environment(t, core)
	address := freeport.Address(t)
	variables["GATEWAY_LISTEN"] = address
	variables["GATEWAY_ACCESS_LOG"] = "true"
	run := exec.CommandContext(t.Context(), program)
	for name, value := range variables {
		run.Env = append(run.Env, name+"="+value)
	}
	var output strings.Builder
	run.Stdout, run.Stderr = &output, &output
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	key := core.AddKey(network.Test).Reveal()
	asynctest.Eventually(t, "it serves", func() bool { status, _ := get(t, "http://"+address+"/v2/tokens", key); return status == http.StatusOK })
	health := func() error {
		return exec.CommandContext(t.Context(), program, "healthcheck", "http://"+address+"/health").Run()
	}
	if err := health(); err != nil {
		t.Errorf("the health of the service by its URL: %v", err)
	}
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil {
		t.Errorf("after TERM: %v", err)
	}
	if health() == nil {
		t.Error("a service that has ended is healthy")
	}
	for _, want := range []string{`"msg":"gateway started"`, `"msg":"request"`, `"msg":"gateway stopped"`} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, output.String())
		}
	}
	if strings.Contains(output.String(), key) {
		t.Error("the log holds the key")
	}

	for args, want := range map[string]string{"-h": "gateway healthcheck ", "--help": "gateway healthcheck ", "help": "gateway healthcheck ", "version": "gateway ", "--version": "gateway "} {
		said, err := exec.CommandContext(t.Context(), program, args).Output()
		if err != nil || !strings.Contains(string(said), want) || strings.Contains(string(said), `"level"`) {
			t.Errorf("gateway %s: %v\n%s", args, err, said)
		}
	}
	misconfigured := exec.CommandContext(t.Context(), program)
	misconfigured.Env = []string{"GATEWAY_CORE_SECRET=short"}
	text, err := misconfigured.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(text), "GATEWAY_CORE_SECRET must have at least 32 characters") {
		t.Errorf("with a bad setting: %v\n%s", err, text)
	}
}
