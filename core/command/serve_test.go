package command_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

const gatewaySecret = "a-secret-of-the-gateways-0123456789"

// process is a core that serves.
type process struct {
	cmd         *exec.Cmd
	listen, ops string
	out         *asynctest.Buffer
	ended       chan struct{}
	err         error // after ended
}

// serve starts core and waits until it is ready.
func serve(t *testing.T, databaseURL string, settings ...string) *process {
	t.Helper()
	return start(t, "serve", databaseURL, settings...)
}

// start starts a command that runs until TERM and waits until it is ready.
func start(t *testing.T, command, databaseURL string, settings ...string) *process {
	t.Helper()
	address := func() string {
		port, err := embedded.FreePort("")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	p := &process{listen: address(), ops: address(), out: &asynctest.Buffer{}, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), binary, command)
	p.cmd.Env = append(on(databaseURL), append(settings,
		"CORE_LISTEN="+p.listen, "CORE_OPS_LISTEN="+p.ops, "CORE_GATEWAY_SECRET="+gatewaySecret)...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	asynctest.Eventually(t, "core is ready", func() bool {
		select {
		case <-p.ended:
			t.Fatalf("core ended: %v\n%s", p.err, p.out)
		default:
		}
		response, err := http.Get("http://" + p.ops + "/readyz") //nolint:noctx // go test bounds it
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return p
}

func TestServe_UnmigratedDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.Unmigrated(t)
	got := core(t, "", append(on(url), "CORE_GATEWAY_SECRET="+gatewaySecret), "serve")
	want := "core: the database is not migrated; run `core migrate`, or serve with CORE_MIGRATE_ON_START=true\n"
	if got.Code != 1 || got.ErrOut != want {
		t.Errorf("got %+v", got)
	}
	p := serve(t, url, "CORE_MIGRATE_ON_START=true")
	if !strings.Contains(p.out.String(), `"msg":"migrated"`) {
		t.Errorf("the migration is not logged:\n%s", p.out)
	}
}

func TestServe_AllFaults(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rpc.json")
	if err := os.WriteFile(file, []byte(`{"eip155:1": ["ws://hunter2.example"], "eip155:x": ["https://a.example"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	quotes := filepath.Join(t.TempDir(), "quotes.json")
	if err := os.WriteFile(quotes, []byte(`[
		{"name": "lifi", "kind": "lifi", "url": "https://hunter2@quotes.example", "environment": "live", "deployment": "d", "headers": {"Host": "hunter2"}}
	]`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := core(t, "", []string{
		"CORE_LISTEN=8081", "CORE_OPS_LISTEN=", "CORE_DATABASE_CONNECTIONS=0", "CORE_STATEMENT_TIMEOUT=1ms", "CORE_GATEWAY_SECRET=hunter2",
		"CORE_PUBLIC_URL=intents.example/path", "CORE_SIGN_UP=maybe", "CORE_DRAIN_DELAY=2m", "CORE_SHUTDOWN_GRACE=1h",
		"CORE_REDIS_URL=http://:hunter2@127.0.0.1", "CORE_SIGN_IN_PER_IP=0", "CORE_KEYS_PER_IP=1000001", "CORE_OIDC_ISSUER=http://id.example",
		"CORE_RPC_FILE=" + file, "CORE_CHAIN_TICK=1ms", "CORE_CHAIN_GRACE=1s",
		"CORE_QUOTES_FILE=" + quotes, "CORE_QUOTES_ALLOW=10.0.0.1", "CORE_EVENTS_RETENTION=5x", "CORE_WATCH=perhaps", "CORE_TYPO=hunter2",
		"CORE_SERVICE_HOST=10.0.0.1", "CORE_PORT=tcp://10.0.0.1:8081", "CORE_PORT_8081_TCP_ADDR=10.0.0.1",
	}, "serve")
	if got.Code != 1 || got.Out != "" {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{
		"CORE_DATABASE_URL", "CORE_LISTEN", "CORE_DATABASE_CONNECTIONS", "CORE_STATEMENT_TIMEOUT", "CORE_GATEWAY_SECRET",
		"CORE_PUBLIC_URL", "CORE_SIGN_UP", "CORE_SHUTDOWN_GRACE", "CORE_REDIS_URL", "CORE_SIGN_IN_PER_IP", "CORE_KEYS_PER_IP",
		"CORE_OIDC_ISSUER", "CORE_OIDC_CLIENT_ID", "CORE_OIDC_CLIENT_SECRET", "CORE_CHAIN_TICK", "CORE_CHAIN_GRACE",
		"CORE_QUOTES_ALLOW", "CORE_QUOTES_FILE: read the quotes file: lifi: the header Host is set by the client of HTTP\nlifi: url has a user or password;",
		"CORE_RPC_FILE: read the RPC file: eip155:1[0]: the URL must begin with https:// or http://\neip155:x: must be a chain id",
		"CORE_EVENTS_RETENTION cannot be read: unable to parse duration:", "CORE_WATCH cannot be read:",
	} {
		if !strings.Contains(got.ErrOut, name+" ") {
			t.Errorf("nothing is said of %s:\n%s", name, got.ErrOut)
		}
	}
	if !strings.Contains(got.ErrOut, "there is no setting CORE_TYPO\n") || strings.Contains(got.ErrOut, "SERVICE_HOST") || strings.Contains(got.ErrOut, "CORE_PORT") {
		t.Errorf("of unknown variables, CORE_TYPO alone is wrong:\n%s", got.ErrOut)
	}
	if strings.Contains(got.ErrOut, "hunter2") {
		t.Errorf("the secret is told:\n%s", got.ErrOut)
	}
}

func TestServe_PortInUse(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	got := core(t, "", append(on(pgtest.Database(t)), "CORE_GATEWAY_SECRET="+gatewaySecret,
		"CORE_LISTEN="+taken.Addr().String(), "CORE_OPS_LISTEN=127.0.0.1:0"), "serve")
	if got.Code != 1 || !strings.Contains(got.ErrOut, "listen on "+taken.Addr().String()+" (is the port taken?)") {
		t.Errorf("got %+v", got)
	}
}

func TestServe_Readiness(t *testing.T) {
	t.Parallel()
	gate := pgtest.NewGate(t, pgtest.Database(t))
	p := serve(t, gate.URL)
	ask := func(path string) (int, string) {
		response, err := http.Get("http://" + p.ops + path) //nolint:noctx // go test bounds it
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(text)
	}
	gate.Shut()
	if status, text := ask("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(text, `"postgres":`) {
		t.Errorf("without a database: %d %s", status, text)
	}
	if status, text := ask("/livez"); status != http.StatusOK {
		t.Errorf("livez without a database: %d %s", status, text)
	}
	gate.Heal()
	asynctest.Eventually(t, "core is ready again", func() bool { status, _ := ask("/readyz"); return status == http.StatusOK })
	if status, text := ask("/metrics"); status != http.StatusOK || !strings.Contains(text, "intents_core_pool_connections_open") {
		t.Errorf("metrics: %d %s", status, text)
	}
}

// After TERM core tells gateways to turn to another core before it takes no more connections.
func TestServe_DrainDelay(t *testing.T) {
	t.Parallel()
	p := serve(t, pgtest.Database(t), "CORE_DRAIN_DELAY=30s")
	client := &http.Client{Transport: &http.Transport{}}
	ask := func(path string) (status int, last bool) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.listen+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Gateway-Secret", gatewaySecret)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode, response.Close
	}
	if status, last := ask("/internal/ready"); status != http.StatusNoContent || last {
		t.Errorf("before TERM: %d, connection closes: %t", status, last)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	asynctest.Eventually(t, "core says that it will end", func() bool { status, _ := ask("/internal/ready"); return status == http.StatusServiceUnavailable })
	if status, last := ask("/openapi.json"); status != http.StatusOK || !last {
		t.Errorf("after TERM: %d, connection closes: %t", status, last)
	}
}

func TestServe_Drain(t *testing.T) {
	t.Parallel()
	p := serve(t, pgtest.Database(t), "CORE_DRAIN_DELAY=0s")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		t.Fatal(err)
	}
	body := `{"email":"ann@example.com","password":"correct horse battery"}`
	fmt.Fprintf(conn, "POST /auth/sign-up/email HTTP/1.1\r\nHost: core\r\nX-Gateway-Secret: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", gatewaySecret, len(body))
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	// The request is in the hands of its handler, which waits for the body.
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	asynctest.Eventually(t, "no new connection is let in", func() bool {
		other, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.listen)
		if err == nil {
			_ = other.Close()
		}
		return err != nil
	})
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("the request in flight got %d", response.StatusCode)
	}
	select {
	case <-p.ended:
		if p.err != nil {
			t.Errorf("core ended with %v", p.err)
		}
	case <-time.After(10 * time.Second):
		t.Error("core still runs")
	}
	if out := p.out.String(); !strings.Contains(out, `"msg":"stopped"`) || strings.Contains(out, gatewaySecret) {
		t.Errorf("log:\n%s", out)
	}
}
