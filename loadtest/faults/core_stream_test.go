package faults_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
)

const (
	// slowReaders read nothing of an endless list once it has begun, and quickBytes are read of another one meanwhile.
	slowReaders = 12
	quickBytes  = 256 << 20
	// row is one of a list's.
	row = `{"id":"01a1fdcd-5699-7414-ac23-ae1d1040c5a2","type":"transfer","status":"created","orderId":"0x7d1f00","createdAt":"2026-11-21T11:10:55Z"},`
)

// endlessCore is core, but for its lists, which have no end.
type endlessCore struct {
	*httptest.Server
	sent, open atomic.Int64
}

func startEndlessCore(t *testing.T) *endlessCore {
	t.Helper()
	target, err := url.Parse(shared.stack.Env().CoreURL)
	if err != nil {
		t.Fatal(err)
	}
	behind := httputil.NewSingleHostReverseProxy(target)
	behind.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	rows := []byte(strings.Repeat(row, 200))
	c := &endlessCore{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/transfers" {
			behind.ServeHTTP(w, r)
			return
		}
		c.open.Add(1)
		defer c.open.Add(-1)
		for r.Context().Err() == nil {
			n, err := w.Write(rows)
			c.sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

// Lists of any length pass with flat memory: core is held back by a slow reader, others are served meanwhile, and
// when a reader leaves core's work on its list ends.
func TestLists_SlowReaders(t *testing.T) {
	t.Parallel()
	core := startEndlessCore(t)
	fleet := startGateways(t, 1, fleetConfig{redis: startRedis(t).address, core: core.URL, env: unhurried()})
	keys := newBoundlessKeys(t, 2)
	warm(t, fleet, keys)
	beside := startLoad(t, fleet, stream{keys: keys[:1], rate: 50}, controlStream)
	pass(t, 500*time.Millisecond)
	before := residentBytes(t, fleet[0])
	peak := followPeak(t, fleet[0])
	began := time.Now()

	var readers []net.Conn
	for range slowReaders {
		readers = append(readers, startReading(t, fleet[0], keys[1]))
	}
	asynctest.Eventually(t, "core is held back", func() bool {
		sent := core.sent.Load()
		pass(t, 50*time.Millisecond)
		return core.open.Load() == slowReaders && core.sent.Load() == sent
	})
	held := core.sent.Load()
	quick := startReading(t, fleet[0], keys[1])
	if _, err := io.CopyN(io.Discard, quick, quickBytes); err != nil {
		t.Fatal(err)
	}
	grown := peak() - before
	left := time.Now()
	for _, reader := range append(readers, quick) {
		_ = reader.Close()
	}
	asynctest.Eventually(t, "core's work has ended", func() bool { return core.open.Load() == 0 })
	ended := time.Since(left)
	all := beside.stop()
	served, j := all.of(0).between(began, left), newJudge(t, all.of(1))

	outcomes.tell(t, outcome{
		Fault: fmt.Sprintf("%d readers of endless lists stop reading", slowReaders), Gateways: 1, Requests: len(served), Errors: len(served.errors()),
		OverAdmission: -1, AddedP99: max(0, served.p99()-all.of(0).between(began.Add(-500*time.Millisecond), began).p99()), Recovery: ended,
		Note: fmt.Sprintf("the gateway grew by %d MiB while it held back %d MiB in all and passed on %d MiB; recovery is the end of core's work",
			grown>>20, held>>20, quickBytes>>20),
	})
	if grown > 64<<20 {
		t.Errorf("the gateway's memory grew by %d MiB", grown>>20)
	}
	// The kernel's buffers for two connections a reader: at most 6 MiB received and 4 MiB sent each, by its defaults.
	if most := int64(slowReaders * 20 << 20); held > most {
		t.Errorf("core sent %d MiB that nobody had read", held>>20)
	}
	if failed := served.errors(); len(failed) > 0 {
		t.Errorf("%d of %d other requests failed: %v", len(failed), len(served), failed.statuses())
	}
	if ended > within(time.Second) {
		j.late("core's work ended only %s after its readers had left", ended)
	}
}

// startReading asks for a list and reads its beginning.
func startReading(t *testing.T, g *gateway, key string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "GET /v2/transfers HTTP/1.1\r\nHost: gateway\r\nX-Api-Key: %s\r\n\r\n", key)
	if line, err := bufio.NewReaderSize(conn, 16).ReadSlice('\n'); !strings.HasPrefix(string(line), "HTTP/1.1 200") {
		t.Fatalf("a list began with %q, %v", line, err)
	}
	return conn
}

// residentBytes is how much memory the gateway's process has.
func residentBytes(t *testing.T, g *gateway) int64 {
	t.Helper()
	return int64(g.metrics(t)["process_resident_memory_bytes"])
}

// followPeak reads the gateway's memory again and again; what it returns ends that and tells the most it saw.
func followPeak(t *testing.T, g *gateway) (peak func() int64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var most int64
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			if m, err := g.readMetrics(ctx); err == nil {
				most = max(most, int64(m["process_resident_memory_bytes"]))
			}
			pass(t, watchEvery)
		}
	})
	t.Cleanup(stop)
	return func() int64 {
		stop()
		following.Wait()
		return most
	}
}
