package edge_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
	"intents.internal/pkg/wire"
)

// A client that reads at the rate may take as long as the answer is, though the gateway has all of it at once.
func TestShared_SteadyReader(t *testing.T) {
	t.Parallel()
	const length, rate = 6 << 20, 2 << 20 // a second, so that all takes much longer than the patience
	core := coretest.Start(t, nil)
	core.Documents.Put("/openapi.json", strings.Repeat(" ", length))
	g := start(t, core, func(s *settings) {
		s.WriteTimeout, s.StreamRate = slowTimeout, rate/2
	})
	asynctest.Eventually(t, "the catalog has the document", func() bool {
		return len(g.send(t, request("GET", "/openapi.json", "", "")).Body) == length
	})
	c := g.dial(t)
	defer c.Close()
	if err := c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	c.write(t, request("GET", "/openapi.json", "", ""))
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	began, read := time.Now(), int64(0)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for read < length {
		<-ticker.C
		due := min(length, int64(time.Since(began).Seconds()*rate)) // it catches up where the machine was busy
		n, err := io.CopyN(io.Discard, answer.Body, due-read)
		if read += n; err != nil {
			t.Fatalf("after %d bytes: %v", read, err)
		}
	}
}

// Strangers who ask for what is open to anyone and never read it take nothing that a client with a key needs. The kernel takes
// only a part of such a document for each (listen.Unsent).
func TestShared_ManyOpenReaders(t *testing.T) { //nolint:paralleltest // it measures this process's memory
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	const addresses, each = 40, 12
	openAPI, tokenList := strings.Repeat("o", 298_000), strings.Repeat("t", 300_000)
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		body := strings.Repeat("l", 64<<10)
		switch r.URL.Path {
		case "/openapi.json":
			body = openAPI
		case "/v2/tokens":
			body = tokenList
		case "/v2/transfers": // in chunks, as long lists are
			for range 15 {
				_, _ = io.WriteString(w, body)
			}
		}
		if r.URL.Path != "/v2/transfers" {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		}
		_, _ = io.WriteString(w, body)
	})
	core.Documents.Put("/openapi.json", openAPI)
	core.Documents.Put("/v2/tokens", tokenList)
	g := start(t, core, func(s *settings) { s.CoreMaxConns = 512 })
	g.send(t, request("GET", "/openapi.json", "", ""))

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range addresses * each {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+n%addresses))}}
		stranger, err := dialer.DialContext(t.Context(), "tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
		if err := stranger.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		path := []string{"/openapi.json", "/v2/openapi.json"}[n%2]
		if _, err := io.WriteString(stranger, request("GET", path, "", "")); err != nil {
			t.Fatal(err)
		}
	}
	asynctest.Eventually(t, "all are stuck", func() bool { return g.requests(t, "/openapi.json") > addresses*each })
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)
	t.Logf("%d strangers hold %d KiB of heap and stacks, both ends together", addresses*each, grown>>10)
	if grown > addresses*each*(64<<10) {
		t.Errorf("%d bytes", grown)
	}

	var refused atomic.Int64
	var clients sync.WaitGroup
	for range 4 {
		key := apiKey(core.AddKey(network.Test))
		clients.Go(func() {
			for n := range 40 {
				target, length := "/v2/tokens", len(tokenList)
				if n%4 == 0 {
					target, length = "/v2/transfers", 16*64<<10
				}
				if got := g.send(t, request("GET", target, key, "")); got.Status != 200 || len(got.Body) != length {
					refused.Add(1)
				}
			}
		})
	}
	clients.Wait()
	if refused.Load() > 0 {
		t.Errorf("%d of 160 requests with a key failed", refused.Load())
	}
}

// Within its limit a client may ask for what is no long list as it likes, all at once.
func TestStream_KnownLengthNotCounted(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(" ", 300_000)
	const within = 50 // of a key's limit
	for _, target := range []string{"/v2/tokens", "/v2/tokens?chain-id=eip155%3A1", "/v2/transfers", "/v2/transfers?limit=1000"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			var arrived atomic.Int64
			together := make(chan struct{})
			core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(len(long)))
				_, _ = io.WriteString(w, long[:100_000])
				_ = http.NewResponseController(w).Flush()
				arrived.Add(1)
				<-together
				_, _ = io.WriteString(w, long[100_000:])
			})
			core.Documents.Put("/v2/tokens", long)
			g := start(t, core, func(s *settings) { s.CoreMaxConns = 512 })
			key := apikey.New(network.Test)
			core.Put(key, wire.VerifiedKey{Limit: wire.KeyLimit{Requests: within, PeriodSeconds: 86400}})
			raw := request("GET", target, apiKey(key), "")
			var all []*clientConn
			for range 60 {
				c := g.dial(t)
				defer c.Close()
				c.write(t, raw)
				all = append(all, c)
			}
			route, _, _ := strings.Cut(target, "?")
			asynctest.Eventually(t, "all are being answered", func() bool { return int(arrived.Load())+g.requests(t, route) >= len(all) })
			close(together)
			counts := map[int]int{}
			for _, c := range all {
				counts[c.read(t, "GET").Status]++
			}
			if diff := cmp.Diff(map[int]int{200: within, 429: 60 - within}, counts); diff != "" {
				t.Errorf("of 60 at once (-want +got):\n%s", diff)
			}
		})
	}
}

// requests is how many requests of a route have been answered, whatever they were answered.
func (g *gateway) requests(tb testing.TB, route string) (count int) {
	tb.Helper()
	for outcomeAndRoute, value := range metricstest.Of(tb, g.Metrics, "intents_gateway_requests_total") {
		if strings.HasSuffix(outcomeAndRoute, " "+route) {
			count += int(value)
		}
	}
	return count
}
