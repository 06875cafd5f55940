package coretest

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// Front is one of several cores on the same database: what it is told, the others know.
type Front struct {
	URL *url.URL
	// Hangs makes it answer nothing, as a process that is stopped.
	Hangs atomic.Bool
	// Late, in nanoseconds, is by how much later it answers, as a core that is far away.
	Late atomic.Int64
	// Asked counts the requests it received, probes included.
	Asked atomic.Int64

	server *httptest.Server
}

// Front runs another core on this one's data until the test ends.
func (c *Core) Front(tb testing.TB) *Front {
	tb.Helper()
	f := &Front{}
	behind := httputil.NewSingleHostReverseProxy(c.URL)
	behind.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // clients may leave
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.Asked.Add(1)
		if f.Hangs.Load() {
			_, _ = io.Copy(io.Discard, r.Body) // only then the server notices a client that leaves
			<-r.Context().Done()
			return
		}
		select {
		case <-time.After(time.Duration(f.Late.Load())):
			behind.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	tb.Cleanup(func() {
		f.server.CloseClientConnections()
		f.server.Close()
	})
	f.URL, _ = url.Parse(f.server.URL)
	return f
}

// Stop makes it unreachable.
func (f *Front) Stop() {
	_ = f.server.Listener.Close()
	f.server.CloseClientConnections()
}
