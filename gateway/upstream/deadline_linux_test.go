package upstream_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/gateway/upstream"
	"intents.internal/pkg/testkit/asynctest"
)

// silent is the URL of a core that drops SYNs, as one behind a broken route does: a socket whose queue of connections that nobody
// accepts is full.
func silent(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	for range 16 {
		conn, err := (&net.Dialer{Timeout: 300 * time.Millisecond}).DialContext(t.Context(), "tcp", address)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			return "http://" + address
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the queue of connections is never full")
	return ""
}

// All tries together take GATEWAY_CORE_TIMEOUT, dials included, and the end of it is no core's fault.
func TestClient_OneDeadline(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	var urls []string
	for range 6 {
		urls = append(urls, silent(t))
	}
	c := newClient(t, settings{timeout: timeout, unprobed: true}, urls...)
	began := time.Now()
	if _, err := c.do(write); !errors.Is(err, upstream.ErrUnreachable) {
		t.Error(err)
	}
	// Without a common deadline it is six dials of a second each.
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("six silent cores made %s into %s", timeout, took)
	}
	for _, core := range c.set.All() {
		if core.Down() {
			t.Errorf("%s is down, and had less time than a dial may take", core.Address)
		}
	}
}

// Silent cores leave time for the one that answers.
func TestClient_SilentCores(t *testing.T) {
	t.Parallel()
	c := newClient(t, settings{timeout: 2 * time.Second, unprobed: true}, silent(t), silent(t), startCore(t, name("here")).URL)
	works := c.set.All()[2]
	works.Begin() // so that it is tried last
	if got := c.answer(write); got != "here" || !works.Up() {
		t.Errorf("answered %s; the core that answers is up: %t", got, works.Up())
	}
}

// A deadline that ended before anything was sent is told as such, and ejects no core.
func TestClient_DeadlineBeforeSend(t *testing.T) {
	t.Parallel()
	core := startCore(t, name("here"))
	for kind, r := range map[string]request{"read": read, "write": write, "list": list} {
		c := newClient(t, settings{timeout: time.Nanosecond, unprobed: true}, core.URL)
		if _, err := c.do(r); !errors.Is(err, upstream.ErrUnreachable) {
			t.Errorf("%s: %v", kind, err)
		}
		if !c.set.All()[0].Up() {
			t.Errorf("%s: the core is ejected", kind)
		}
	}
	if got := core.hits.Load(); got != 0 {
		t.Errorf("%d requests were sent", got)
	}
}

// The log says why a core cannot be reached.
func TestClient_DialCauseLogged(t *testing.T) {
	t.Parallel()
	log := &asynctest.Buffer{}
	c := newClient(t, settings{unprobed: true, options: upstream.Options{Log: slog.New(slog.NewTextHandler(log, nil))}}, refusing(t))
	if _, err := c.do(read); !errors.Is(err, upstream.ErrUnreachable) {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "core unreachable") || !strings.Contains(text, "connection refused") {
		t.Errorf("logged: %s", text)
	}
}
