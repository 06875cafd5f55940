package manifests_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

// standIn is a stub of a gateway. Its response has its name and the client address of the request's headers. At /v2/events it waits for
// the client to give up.
type standIn struct {
	ip      string
	ready   atomic.Bool
	waiting atomic.Int64
}

// startStandIn listens at the ports, which are free ones if they are 0, and returns them.
func startStandIn(t *testing.T, ip string, public, operators int) (s *standIn, publicPort, operatorsPort int) {
	t.Helper()
	s = &standIn{ip: ip}
	s.ready.Store(true)
	publicPort = serve(t, ip, public, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/events" {
			s.waiting.Add(1)
			<-r.Context().Done()
			s.waiting.Add(-1)
			return
		}
		fmt.Fprintf(w, "%s for=%q proto=%q", ip, r.Header.Values("X-Forwarded-For"), r.Header.Values("X-Forwarded-Proto"))
	})
	operatorsPort = serve(t, ip, operators, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !s.ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	return s, publicPort, operatorsPort
}

func serve(t *testing.T, ip string, port int, handler http.HandlerFunc) int {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("%s:%d", ip, port))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr().(*net.TCPAddr).Port
}

// names is a DNS server that returns the address of every replica, as Docker's does.
func names(t *testing.T, replicas *atomic.Pointer[[]*standIn]) (address string) {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-done })
	go func() {
		defer close(done)
		buffer := make([]byte, 1<<13)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var question dnsmessage.Message
			if question.Unpack(buffer[:n]) != nil || len(question.Questions) != 1 {
				continue
			}
			q := question.Questions[0]
			answer := dnsmessage.Message{
				Header: dnsmessage.Header{ID: question.ID, Response: true, RecursionAvailable: true}, Questions: question.Questions,
			}
			if q.Name.String() == "gateway." && q.Type == dnsmessage.TypeA {
				for _, replica := range *replicas.Load() {
					answer.Answers = append(answer.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 600},
						Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(replica.ip).To4())},
					})
				}
			}
			if packed, err := answer.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}

// startHAProxy runs the shipped configuration with free addresses of this machine.
func startHAProxy(t *testing.T, resolver string, public, operators int) (clients, health string) {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("haproxy is not installed")
		}
		t.Skip("haproxy is not installed")
	}
	clients, health = free(t), free(t)
	text := read(t, "deploy/haproxy/haproxy.cfg")
	for old, replacement := range map[string]string{
		"127.0.0.11:53": resolver, "maxconn 20000": "maxconn 1000", "bind :8080\n": "bind " + clients + "\n", "127.0.0.1:8404": health,
		"check port 9080 ": fmt.Sprintf("check port %d ", operators), "gateway:8080": fmt.Sprintf("gateway:%d", public),
	} {
		if strings.Count(text, old) != 1 {
			t.Fatalf("the configuration has %q %d times", old, strings.Count(text, old))
		}
		text = strings.Replace(text, old, replacement, 1)
	}
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "-db", "-f", path)
	command.Stdout, command.Stderr = &log, &log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return "http://" + clients + "/", "http://" + health + "/health"
}

func free(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// fetch sends a request with forged client headers on a new connection.
func fetch(t *testing.T, url string) (status int, body string, header http.Header) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", "6.6.6.6")
	request.Header.Set("X-Forwarded-Proto", "https")
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text), response.Header
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	began := time.Now()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("not within 30 s: %s", what)
		}
		<-ticker.C
	}
	t.Logf("%s after %s", what, time.Since(began).Round(time.Millisecond))
}

// HAProxy with the shipped configuration discovers gateways by DNS, drains those that are stopping without failing a request, and
// overwrites forged client headers.
func TestHAProxy(t *testing.T) {
	t.Parallel()
	a, public, operators := startStandIn(t, "127.0.0.2", 0, 0)
	b, _, _ := startStandIn(t, "127.0.0.3", public, operators)
	var replicas atomic.Pointer[[]*standIn]
	replicas.Store(&[]*standIn{a})
	clients, health := startHAProxy(t, names(t, &replicas), public, operators)

	answer := func(s *standIn) string {
		return fmt.Sprintf("%s for=%q proto=%q", s.ip, []string{"127.0.0.1"}, []string{"http"})
	}
	eventually(t, "the first gateway is found", func() bool { _, body, _ := fetch(t, clients); return body == answer(a) })
	if status, _, _ := fetch(t, health); status != http.StatusOK {
		t.Errorf("healthy, it says %d", status)
	}

	replicas.Store(&[]*standIn{a, b})
	eventually(t, "another gateway is found", func() bool { _, body, _ := fetch(t, clients); return body == answer(b) })

	a.ready.Store(false)
	inRow := 0
	eventually(t, "a gateway that is about to end gets nothing any more", func() bool {
		status, body, _ := fetch(t, clients)
		if status != http.StatusOK {
			t.Errorf("a request failed meanwhile: %d %s", status, body)
		}
		if inRow++; body != answer(b) {
			inRow = 0
		}
		return inRow == 20
	})

	b.ready.Store(false)
	afters := map[string]bool{}
	const none = `{"code":"SERVICE_UNAVAILABLE","message":"No gateway can be reached. Try again shortly."}`
	eventually(t, "no gateway is left", func() bool {
		status, body, header := fetch(t, clients)
		if status != http.StatusServiceUnavailable || body != none || header.Get("Content-Type") != "application/json" {
			return false
		}
		afters[header.Get("Retry-After")] = true
		return len(afters) == 3
	})
	if diff := cmp.Diff(map[string]bool{"1": true, "2": true, "3": true}, afters); diff != "" {
		t.Errorf("Retry-After: %s", diff)
	}
	if status, _, _ := fetch(t, health); status != http.StatusServiceUnavailable {
		t.Errorf("without gateways, it says %d", status)
	}
	a.ready.Store(true)
	eventually(t, "a gateway is back", func() bool { _, body, _ := fetch(t, clients); return body == answer(a) })
}

// A client that gives up while it waits for events does not keep its place at the gateway.
func TestHAProxy_ClientDisconnects(t *testing.T) {
	t.Parallel()
	a, public, operators := startStandIn(t, "127.0.0.4", 0, 0)
	var replicas atomic.Pointer[[]*standIn]
	replicas.Store(&[]*standIn{a})
	clients, _ := startHAProxy(t, names(t, &replicas), public, operators)
	eventually(t, "the gateway is found", func() bool { status, _, _ := fetch(t, clients); return status == http.StatusOK })
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, clients+"v2/events?wait=25", nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		response, err := (&http.Transport{}).RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		ended <- err
	}()
	eventually(t, "the gateway has the request", func() bool { return a.waiting.Load() == 1 })
	giveUp()
	if err := <-ended; err == nil {
		t.Error("the request was answered")
	}
	eventually(t, "the gateway has it no more", func() bool { return a.waiting.Load() == 0 })
}
