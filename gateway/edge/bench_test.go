package edge_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/conn"
	"intents.internal/gateway/coretest"
	"intents.internal/gateway/edge"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// bench runs the handler on one request over and over, without the server's own reading and writing.
func bench(b *testing.B, g *gateway, raw string, status int) {
	b.Helper()
	ctx := requestCtx(b, raw)
	b.ReportAllocs()
	for b.Loop() {
		g.Edge.Handle(ctx)
		if got := ctx.Response.StatusCode(); got != status {
			b.Fatalf("status %d: %s", got, ctx.Response.Body())
		}
		ctx.Response.Reset()
	}
}

// requestCtx is a request that has been read, with a client's connection from 127.0.0.1.
func requestCtx(b *testing.B, raw string) *fasthttp.RequestCtx {
	b.Helper()
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	client, err := new(net.Dialer).DialContext(b.Context(), "tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	limiter := conn.NewLimiter(conn.Options{MaxConns: 1, WriteTimeout: time.Second}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	server, err := limiter.Listener(l).Accept()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	ctx := &fasthttp.RequestCtx{}
	ctx.Init2(server, nil, true)
	if err := ctx.Request.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
		b.Error(err)
	}
	return ctx
}

// record is a short response of core.
const record = `{"id":"1"}`

// startBench runs a gateway before a core that costs next to nothing and answers every client with this body, in chunks of 32 KiB
// where it is a long list.
func startBench(b *testing.B, body string) (*gateway, *coretest.Core) {
	b.Helper()
	core := coretest.Start(b, nil)
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	upstream := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("application/json")
		if len(body) <= 512<<10 {
			ctx.SetBodyString(body)
			return
		}
		ctx.SetBodyStreamWriter(func(to *bufio.Writer) {
			for chunk := range slices.Chunk([]byte(body), 32<<10) {
				_, _ = to.Write(chunk)
				_ = to.Flush() // its errors are the client's, which fails
			}
		})
	}}
	go upstream.Serve(listener) //nolint:errcheck // it ends with the benchmark
	b.Cleanup(func() { _ = upstream.Shutdown() })
	g := start(b, core, func(s *settings) {
		s.AccessLog = false
		forwarder := coretest.Upstream(b, coretest.Options(&url.URL{Scheme: "http", Host: listener.Addr().String()}))
		s.edge = func(e *edge.Edge) { e.SetUpstream(forwarder) }
	})
	return g, core
}

// unlimited is a limit that no benchmark reaches.
var unlimited = wire.KeyLimit{Requests: 1_000_000_000, PeriodSeconds: 1}

// unlimitedKey is the header of a key whose limit no benchmark reaches.
func unlimitedKey(core *coretest.Core) string {
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Limit: unlimited, AccountLimit: unlimited})
	return apiKey(key)
}

func BenchmarkForwarded(b *testing.B) {
	g, core := startBench(b, record)
	bench(b, g, request("GET", "/v2/transfers/1", unlimitedKey(core), ""), 200)
}

// BenchmarkForwardedRestricted is the same with a key that has one scope and as many networks as it may, the client's last.
func BenchmarkForwardedRestricted(b *testing.B) {
	g, core := startBench(b, record)
	var networks []netip.Prefix
	for i := range 31 {
		networks = append(networks, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i)}), 16))
	}
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{
		Limit: unlimited, AccountLimit: unlimited, Scopes: []string{"intents:read"},
		Networks: append(networks, netip.MustParsePrefix("127.0.0.0/8")),
	})
	bench(b, g, request("GET", "/v2/transfers/1", apiKey(key), ""), 200)
}

// BenchmarkForwardedParallel is 64 clients with a key each. What a call to Redis takes is shared by all who join it.
func BenchmarkForwardedParallel(b *testing.B) {
	g, core := startBench(b, record)
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		key := unlimitedKey(core)
		ctx := requestCtx(b, request("GET", "/v2/transfers/1", key, ""))
		for pb.Next() {
			g.Edge.Handle(ctx)
			if got := ctx.Response.StatusCode(); got != fasthttp.StatusOK {
				b.Errorf("status %d: %s", got, ctx.Response.Body())
			}
			ctx.Response.Reset()
		}
	})
}

func BenchmarkForwardedTransfer(b *testing.B) {
	g, core := startBench(b, record)
	bench(b, g, request("POST", "/v2/transfers", unlimitedKey(core)+jsonType, transfer("eip155:11155111", "eip155:11155111")), 200)
}

// BenchmarkForwardedTransferBatch is a batch of as many intents as it may have.
func BenchmarkForwardedTransferBatch(b *testing.B) {
	g, core := startBench(b, record)
	bench(b, g, request("POST", "/v2/transfers/batch", unlimitedKey(core)+batchHeaders, batchOf(wire.MaxTransferBatch)), 200)
}

func BenchmarkRateLimited(b *testing.B) {
	g, core := startBench(b, record)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Limit: wire.KeyLimit{Requests: 1, PeriodSeconds: 86400}})
	g.send(b, request("GET", "/v2/tokens", apiKey(key), ""))
	g.send(b, request("GET", "/v2/tokens", apiKey(key), ""))
	bench(b, g, request("GET", "/v2/tokens", apiKey(key), ""), 429)
}

// BenchmarkRateLimitedKeys is the same with 20,000 keys of 1,000 accounts in turn, more than a processor's caches hold.
func BenchmarkRateLimitedKeys(b *testing.B) {
	g, core := startBench(b, record)
	ctx := requestCtx(b, request("GET", "/v2/tokens", "", ""))
	keys := make([]string, 20_000)
	for i := range keys {
		key := apikey.New(network.Test)
		keys[i] = key.Reveal()
		core.Put(key, wire.VerifiedKey{
			AccountID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i%1000),
			Limit:     wire.KeyLimit{Requests: 1, PeriodSeconds: 86400}, AccountLimit: wire.KeyLimit{Requests: 1000, PeriodSeconds: 60},
		})
	}
	handle := func(i int) (status int) {
		ctx.Request.Header.Set("X-Api-Key", keys[i%len(keys)])
		g.Edge.Handle(ctx)
		status = ctx.Response.StatusCode()
		ctx.Response.Reset()
		return status
	}
	for i := range 2 * len(keys) {
		handle(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if status := handle(i); status != 429 {
			b.Fatalf("status %d", status)
		}
	}
}

// BenchmarkShared is an answer of 300 KB that every client gets alike.
func BenchmarkShared(b *testing.B) {
	g, core := startBench(b, record)
	core.Documents.Put("/v2/tokens", strings.Repeat(" ", 300_000))
	bench(b, g, request("GET", "/v2/tokens", unlimitedKey(core), ""), 200)
}

// BenchmarkSharedOpen is the same without a key.
func BenchmarkSharedOpen(b *testing.B) {
	g, core := startBench(b, record)
	core.Documents.Put("/openapi.json", strings.Repeat(" ", 300_000))
	bench(b, g, request("GET", "/openapi.json", "", ""), 200)
}

func BenchmarkNetworkRefused(b *testing.B) {
	g, core := startBench(b, record)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	bench(b, g, request("GET", "/v2/transfers/1", apiKey(key), ""), 403)
}

func BenchmarkScopeRefused(b *testing.B) {
	g, core := startBench(b, record)
	key := apikey.New(network.Test)
	core.Put(key, wire.VerifiedKey{Scopes: []string{"webhooks"}})
	bench(b, g, request("GET", "/v2/transfers/1", apiKey(key), ""), 403)
}

func BenchmarkNoKey(b *testing.B) {
	g, _ := startBench(b, record)
	bench(b, g, request("GET", "/v2/tokens", "", ""), 401)
}

func BenchmarkMalformedKey(b *testing.B) {
	g, _ := startBench(b, record)
	bench(b, g, request("GET", "/v2/tokens", "x-api-key: sk_test_short\r\n", ""), 403)
}
