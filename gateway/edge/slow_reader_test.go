package edge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// endless is a core whose answers never end, and how many of them it is sending.
func endless(t *testing.T) (*coretest.Core, *atomic.Int64) {
	t.Helper()
	var sending atomic.Int64
	return coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/tokens") {
			fmt.Fprint(w, `[]`)
			return
		}
		sending.Add(1)
		defer sending.Add(-1)
		chunk := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}), &sending
}

// slowReader asks for a list that never ends and has the kernel take as little of it as it can.
func (g *gateway) slowReader(tb testing.TB, key string) *clientConn {
	tb.Helper()
	c := g.dial(tb)
	if err := c.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		tb.Fatal(err)
	}
	c.write(tb, request("GET", "/v2/transfers", key, ""))
	return c
}

func TestWriteTimeout_SlowReader(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*clientConn) error{
		"nothing": func(*clientConn) error { return nil },
		"a little now and then": func(c *clientConn) error {
			_, err := io.CopyN(io.Discard, c, 1<<10)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, sending := endless(t)
			g := start(t, core, func(s *settings) {
				s.WriteTimeout, s.StreamRate = slowTimeout, 1<<20
			})
			began := time.Now()
			c := g.slowReader(t, apiKey(core.AddKey(network.Test)))
			defer c.Close()
			asynctest.Eventually(t, "core sends", func() bool { return sending.Load() == 1 })
			asynctest.Eventually(t, "the reader is let go", func() bool {
				_ = read(c) // what it comes to shows below
				return sending.Load() == 0
			})
			within(t, name, time.Since(began), slowTimeout)
			asynctest.Eventually(t, "it is counted", func() bool { return g.value(t, "intents_gateway_slow_readers_total") == 1 })
			asynctest.Eventually(t, "nobody is left", func() bool { return g.value(t, "intents_gateway_connections_open") == 0 })
		})
	}
}

// A client that reads at the rate may take as long as the answer is, and is not charged for what core takes.
func TestWriteTimeout_SteadyReader(t *testing.T) {
	t.Parallel()
	const pieces, piece = 12, 64 << 10
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		for range pieces {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
			fmt.Fprint(w, strings.Repeat(" ", piece))
			_ = http.NewResponseController(w).Flush()
		}
	})
	g := start(t, core, func(s *settings) { s.WriteTimeout, s.StreamRate = 300*time.Millisecond, 1<<40 })
	c := g.dial(t)
	defer c.Close()
	c.write(t, request("GET", "/v2/transfers", apiKey(core.AddKey(network.Test)), ""))
	if got := c.read(t, "GET"); got.Status != 200 || len(got.Body) != pieces*piece {
		t.Errorf("%d with %d bytes", got.Status, len(got.Body))
	}
}

// Readers that hold long answers leave room for everybody's short ones, and one account's for another's long ones.
func TestStream_SlowReadersBounded(t *testing.T) {
	t.Parallel()
	core, sending := endless(t)
	g := start(t, core)
	greedy, other := apiKey(core.AddKey(network.Test)), apiKey(core.AddKey(network.Test))
	for range 40 { // of the 64 connections to core
		c := g.slowReader(t, greedy)
		defer c.Close()
		if _, err := c.reader.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	// Of 64 connections 48 may be in use for long answers, 2 of these for one account.
	asynctest.Eventually(t, "core sends what one account may have", func() bool { return sending.Load() == 2 })
	if got := g.send(t, request("GET", "/v2/tokens", other, "")); got.Status != 200 {
		t.Errorf("short answer: %+v", got)
	}
	// Core is not even asked for what this account could not have.
	before := len(core.Requests())
	if got := g.send(t, request("GET", "/v2/transfers", greedy, "")); got.Status != 503 || len(core.Requests()) != before {
		t.Errorf("one more: %+v, core received %d requests", got, len(core.Requests())-before)
	}
	for range 30 {
		account := apiKey(core.AddKey(network.Test))
		for range 2 {
			c := g.slowReader(t, account)
			defer c.Close()
			if _, err := c.reader.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	asynctest.Eventually(t, "core sends what all accounts may have", func() bool { return sending.Load() == 48 })
	if got := g.send(t, request("GET", "/v2/tokens", other, "")); got.Status != 200 {
		t.Errorf("short answer: %+v", got)
	}
	got := g.send(t, request("GET", "/v2/transfers", other, ""))
	delete(got.Header, "Ratelimit") // it depends on the time
	want := refusal(503, `{"code":"SERVICE_UNAVAILABLE","message":"Too many long lists are in flight for all accounts together. Request pages with limit, or try again shortly."}`,
		"Retry-After", "1", "Ratelimit-Policy", defaultPolicy)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("long answer: %s", diff)
	}
}

// Answers to requests that came at once are each counted until they are written, and no longer.
func TestStream_PipelinedCountedOnce(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 100_000)) })
	g := start(t, core, func(s *settings) { s.CoreMaxConns = 32 })
	c := g.dial(t)
	defer c.Close()
	key := apiKey(core.AddKey(network.Test))
	c.write(t, strings.Repeat(request("GET", "/v2/tokens", key, "")+request("GET", "/v2/transfers", key, ""), 3))
	for range 6 {
		if got := c.read(t, "GET"); got.Status != 200 || len(got.Body) != 100_000 {
			t.Fatalf("%d with %d bytes", got.Status, len(got.Body))
		}
	}
	asynctest.Eventually(t, "none is counted", func() bool { return g.value(t, "intents_gateway_long_answers") == 0 })
}

// However many lists one account asks for at once, others have connections to core.
func TestStream_ListsByAccount(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var making atomic.Int64
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("wait") {
			making.Add(1)
			<-release
		}
		fmt.Fprint(w, `[]`)
	})
	g := start(t, core)
	greedy, other := apiKey(core.AddKey(network.Test)), apiKey(core.AddKey(network.Test))
	var waiting []*clientConn
	for range 12 { // a quarter
		c := g.dial(t)
		defer c.Close()
		c.write(t, request("GET", "/v2/transfers?wait", greedy, ""))
		waiting = append(waiting, c)
	}
	asynctest.Eventually(t, "core makes what one account may have", func() bool { return making.Load() == 12 })
	lists := documentedLists(t)
	if len(lists) < 3 {
		t.Errorf("the document has the lists %q alone", lists)
	}
	for _, target := range lists {
		if got := g.send(t, request("GET", target, greedy, "")); got.Status != 503 {
			t.Errorf("%s: %+v", target, got)
		}
	}
	if got := g.send(t, request("GET", "/v2/tokens", greedy, "")); got.Status != 200 {
		t.Errorf("what is no list: %+v", got)
	}
	if got := g.send(t, request("GET", "/v2/transfers", other, "")); got.Status != 200 {
		t.Errorf("another account: %+v", got)
	}
	close(release)
	for _, c := range waiting {
		if got := c.read(t, "GET"); got.Status != 200 {
			t.Errorf("one of the twelve: %+v", got)
		}
		_ = c.Close()
	}
	asynctest.Eventually(t, "there is room again", func() bool {
		return g.send(t, request("GET", "/v2/transfers", greedy, "")).Status == 200
	})
}

// documentedLists are the paths of core's document whose GET takes a key and a limit.
func documentedLists(t *testing.T) (paths []string) {
	t.Helper()
	text, err := os.ReadFile("../../core/web/api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]struct {
			Get *struct {
				Security   []map[string]any
				Parameters []struct {
					Name string
					Ref  string `json:"$ref"`
				}
			}
		}
		Components struct {
			Parameters map[string]struct{ Name string }
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for path, item := range document.Paths {
		if item.Get == nil || len(item.Get.Security) == 0 || item.Get.Security[0]["apiKeyHeader"] == nil {
			continue
		}
		for _, p := range item.Get.Parameters {
			if p.Name == "limit" || document.Components.Parameters[p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]].Name == "limit" {
				paths = append(paths, strings.ReplaceAll(path, "{id}", "1"))
			}
		}
	}
	return paths
}
