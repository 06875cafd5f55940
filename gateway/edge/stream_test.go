package edge_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

const streamed = 64 << 20

func TestStream_BoundedMemory(t *testing.T) { //nolint:paralleltest // it measures this process's memory
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := make([]byte, 64<<10)
		for range streamed / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	g := start(t, core)
	c := g.dial(t)
	defer c.Close()
	c.write(t, request("GET", "/v2/transfers", apiKey(core.AddKey(network.Test)), ""))
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, answer.Body)
	runtime.ReadMemStats(&after)
	if n != streamed || err != nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("heap grew by %d KiB while %d MiB passed", grown>>10, n>>20)
	if grown > 8<<20 {
		t.Errorf("heap grew by %d bytes", grown)
	}
}

func TestStream_CoreBreaksOff(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]http.HandlerFunc{
		"between chunks": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `[{"id":"1"}`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"within the length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			fmt.Fprint(w, `[{"id":"1"}`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"cleanly between chunks": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n")
			_ = conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := coretest.Start(t, broken)
			g := start(t, core)
			c := g.dial(t)
			defer c.Close()
			c.write(t, request("GET", "/v2/transfers", apiKey(core.AddKey(network.Test)), ""))
			answer, err := http.ReadResponse(c.reader, nil)
			if err == nil { // else nothing at all is broken enough
				defer answer.Body.Close()
				if body, err := io.ReadAll(answer.Body); err == nil {
					t.Errorf("%d %q looks whole", answer.StatusCode, body)
				}
			}
			asynctest.Eventually(t, "it is counted", func() bool { return g.value(t, "intents_gateway_streamed_answers_total core") == 1 })
		})
	}
}

// A short answer is read whole before any of it goes on, so one that breaks off is an error that the client can read.
func TestForward_TruncatedResponse(t *testing.T) {
	t.Parallel()
	whole := `[{"id":"1"}]`
	var breaks atomic.Bool
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
		if !breaks.Load() {
			fmt.Fprint(w, whole)
			return
		}
		fmt.Fprint(w, whole[:5])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	g := start(t, core)
	raw := request("GET", "/v2/transfers", apiKey(core.AddKey(network.Test)), "")
	if got := g.send(t, raw); got.Status != 200 || got.Body != whole {
		t.Errorf("whole: %+v", got)
	}
	breaks.Store(true)
	if got := g.send(t, raw); got.Status != 503 || !strings.Contains(got.Body, "broke off") || got.Header.Get("Retry-After") != "1" {
		t.Errorf("broken: %+v", got)
	}
}

func TestForward_ResponseWithoutLength(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n[]")
			_ = conn.Close()
		}
	})
	g := start(t, core)
	if got := g.send(t, request("GET", "/v2/transfers", apiKey(core.AddKey(network.Test)), "")); got.Status != 503 {
		t.Errorf("answer: %+v", got)
	}
}
