package coretest

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/pkg/wire"
)

// tapped is a listener whose connections remember what came in on them, and that counts those open.
type tapped struct {
	net.Listener
	open atomic.Int64
}

func (l *tapped) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return &tap{Conn: conn, from: l}, nil
}

// tap is one of these connections.
type tap struct {
	net.Conn
	from  *tapped
	close sync.Once

	mu   sync.Mutex
	came []byte
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.mu.Lock()
	t.came = append(t.came, p[:n]...)
	t.mu.Unlock()
	return n, err
}

func (t *tap) Close() error {
	t.close.Do(func() { t.from.open.Add(-1) })
	return t.Conn.Close()
}

// take is what came since it was last asked for.
func (t *tap) take() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	came := t.came
	t.came = nil
	return came
}

type tapKey struct{}

func withTap(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, tapKey{}, conn)
}

// take is what came on the connection of a request since it was last asked for: once the body has been read, the request.
func take(r *http.Request) []byte {
	t, _ := r.Context().Value(tapKey{}).(*tap)
	return t.take()
}

// rawRequest is a request as it came, but for the line with the secret, which was demanded already.
func rawRequest(r *http.Request) string {
	if message, ok := r.Context().Value(messageKey{}).([]byte); ok {
		return string(message)
	}
	raw := take(r)
	if start := bytes.Index(raw, []byte(wire.HeaderGatewaySecret+": ")); start >= 0 {
		end := bytes.IndexByte(raw[start:], '\n')
		raw = append(raw[:start:start], raw[start+end+1:]...)
	}
	return string(raw)
}

// AwaitNobody fails the test if a user of the stand-in leaves a connection open. That one is closed shows here a moment
// later.
func (c *Core) AwaitNobody(tb testing.TB) {
	tb.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for c.listener.open.Load() > 0 {
		if time.Now().After(deadline) {
			tb.Errorf("%d connections to core are still open", c.listener.open.Load())
			return
		}
		time.Sleep(time.Millisecond)
	}
}
