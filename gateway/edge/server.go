package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// ServerOptions bound what clients may cost; all must be set.
type ServerOptions struct {
	// ReadTimeout is how long a request may take to arrive, headers and body together.
	ReadTimeout time.Duration
	// WriteTimeout is how long a client may take to read an answer.
	WriteTimeout time.Duration
	// StreamTimeout is the same for the long answers that are streamed, and StreamRate how many bytes a second of them the
	// client must have read, on average, WriteTimeout ago (0 for no such bound).
	StreamTimeout time.Duration
	StreamRate    int
	// IdleTimeout is how long a connection may wait for its next request. For its first it has ReadTimeout.
	IdleTimeout time.Duration
	// MaxConns bounds the connections served at once, MaxConnsPerIP those of one IPv4 address or IPv6 /64 (0 for no bound).
	MaxConns, MaxConnsPerIP int
	// MaxLongAnswers bounds the lists that clients are reading while core still sends them, each of which holds a connection
	// to core. One account may have one in 24, and core make a quarter as many lists for it at once (0 for no bound).
	MaxLongAnswers int
	// MaxHeaderBytes bounds the request line and headers, MaxBodyBytes the body. Besides, there may be 64 header lines.
	MaxHeaderBytes, MaxBodyBytes int
}

const (
	// noBound keeps fasthttp's own bound, whose refusal is not JSON and which cannot be changed, out of the door's way.
	noBound = math.MaxInt32
	// idleWorkers is how long a goroutine waits for its next connection.
	idleWorkers = 2 * time.Second
)

// newServer sets up fasthttp. Its request streaming stays off: in this version it lets requests be smuggled.
func (e *Edge) newServer(o ServerOptions) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:        e.handle,
		ErrorHandler:   e.onUnreadable,
		ExpectHandler:  e.onExpect,
		HeaderReceived: func(h *fasthttp.RequestHeader) fasthttp.RequestConfig { e.onHeaders(h); return configFor(h, o) },

		ReadTimeout:           o.ReadTimeout,
		WriteTimeout:          o.WriteTimeout,
		IdleTimeout:           o.IdleTimeout,
		Concurrency:           noBound,
		MaxIdleWorkerDuration: idleWorkers,
		ReadBufferSize:        o.MaxHeaderBytes,
		MaxRequestBodySize:    o.MaxBodyBytes,

		DisablePreParseMultipartForm: true,
		NoDefaultContentType:         true,
		NoDefaultServerHeader:        true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
		Logger:                       silence{},
	}
}

// silence takes fasthttp's own log lines: they tell of clients that hung up, which the metrics count.
type silence struct{}

func (silence) Printf(string, ...any) {}

// configFor gives long answers the time they need to be read.
func configFor(h *fasthttp.RequestHeader, o ServerOptions) fasthttp.RequestConfig {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte("?"))
	if match(path).streams(h.Method()) {
		return fasthttp.RequestConfig{WriteTimeout: o.StreamTimeout}
	}
	return fasthttp.RequestConfig{}
}

// Serve answers connections of the listener until Drain; it returns nil then.
func (e *Edge) Serve(listener net.Listener) error {
	if err := e.server.Serve(&entrance{Listener: listener, door: e.door}); err != nil {
		return fmt.Errorf("serve clients on %s: %w", listener.Addr(), err)
	}
	return nil
}

// AnnounceDrain makes every answer from now on the last of its connection, while new connections are still served.
func (e *Edge) AnnounceDrain() { e.draining.Store(true) }

var errDraining = errors.New("the gateway is shutting down")

// Draining is a readiness check that fails once the drain is announced.
func (e *Edge) Draining(context.Context) error {
	if e.draining.Load() {
		return errDraining
	}
	return nil
}

// Drain takes no more connections, closes idle ones and waits for requests under way until ctx ends.
func (e *Edge) Drain(ctx context.Context) error {
	e.AnnounceDrain()
	defer e.door.settle()
	if err := e.server.ShutdownWithContext(ctx); err != nil {
		return fmt.Errorf("drain client connections: %w", err)
	}
	return nil
}

// onExpect decides whether a client that asked beforehand may send its body. It returns 100, or the status of the
// refusal it has written.
func (e *Edge) onExpect(ctx *fasthttp.RequestCtx) (status int) {
	status = fasthttp.StatusInternalServerError // should admit panic
	defer func() {
		if status != fasthttp.StatusContinue {
			linger(ctx) // fasthttp closes now, and the client may be sending its body already
		}
	}()
	x := e.begin(ctx, time.Now())
	defer e.end(x)
	if refusal := e.admit(x); refusal != nil {
		x.answer(refusal)
		return refusal.status
	}
	x.continues = true
	return fasthttp.StatusContinue
}
