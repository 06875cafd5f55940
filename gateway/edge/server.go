package edge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// ServerOptions bound the resources of clients; all must be set.
type ServerOptions struct {
	// ReadTimeout is how long a request may take to arrive, headers and body together.
	ReadTimeout time.Duration
	// WriteTimeout is how long a client may take to read a response.
	WriteTimeout time.Duration
	// StreamTimeout replaces WriteTimeout for responses that may be long. StreamRate is the minimum average rate, in bytes per
	// second, at which a client must read them; a client that is more than WriteTimeout behind it is disconnected (0 for no such
	// bound).
	StreamTimeout time.Duration
	StreamRate    int
	// IdleTimeout is how long a connection may wait for its next request. ReadTimeout applies to the first request.
	IdleTimeout time.Duration
	// MaxConns bounds the open connections, MaxConnsPerIP those of one IPv4 address or IPv6 /64 (0 for no bound).
	MaxConns, MaxConnsPerIP int
	// MaxLongLists bounds the lists that stream, each of which holds a connection to core. One account may have 1/24 of them, and
	// a quarter as many lists of any length in flight at core (0 for no bound).
	MaxLongLists int
	// MaxQuoteRequests bounds the requests for quotes in flight at core. One account may have 1/8 of them, one key 1/16 (0 for no
	// bound).
	MaxQuoteRequests int
	// MaxHeaderBytes bounds the request line and header, MaxBodyBytes the body. A header has at most 64 lines.
	MaxHeaderBytes, MaxBodyBytes int
}

const (
	// unlimited disables fasthttp's own bound, whose response is not JSON. conn.Limiter has the bound.
	unlimited = math.MaxInt32
	// idleWorkers is how long a worker goroutine stays idle before it exits.
	idleWorkers = 2 * time.Second
	// writeBuffer fits the header and body of most responses, which are then written in one system call. A connection has the
	// buffer only during a write.
	writeBuffer = 16 << 10
)

// newServer makes the fasthttp server. Its request streaming stays off: in this version it allows request smuggling.
func (e *Edge) newServer(o ServerOptions) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:       e.handle,
		ErrorHandler:  e.handleUnreadable,
		ExpectHandler: e.handleExpect,
		HeaderReceived: func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
			e.handleHeader(h)
			return fasthttp.RequestConfig{}
		},

		ReadTimeout:           o.ReadTimeout,
		WriteTimeout:          o.WriteTimeout,
		IdleTimeout:           o.IdleTimeout,
		Concurrency:           unlimited,
		MaxIdleWorkerDuration: idleWorkers,
		ReadBufferSize:        o.MaxHeaderBytes,
		ReduceMemoryUsage:     true,
		WriteBufferSize:       writeBuffer,
		MaxRequestBodySize:    o.MaxBodyBytes,

		DisablePreParseMultipartForm: true,
		NoDefaultContentType:         true,
		NoDefaultServerHeader:        true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
		Logger:                       discardLogger{},
	}
}

// discardLogger discards fasthttp's log lines about disconnected clients, which the metrics count.
type discardLogger struct{}

func (discardLogger) Printf(string, ...any) {}

// setWriteTimeout sets StreamTimeout for a response that may be long.
func (e *Edge) setWriteTimeout(x *exchange) {
	if c := connOf(x.ctx); c != nil && x.route.streams(x.method()) {
		c.SetResponseTimeout(e.streamTimeout)
	}
}

// Serve serves the listener's connections until Drain, then returns nil.
func (e *Edge) Serve(listener net.Listener) error {
	if err := e.server.Serve(e.connLimiter.Listener(listener)); err != nil {
		return fmt.Errorf("serve clients on %s: %w", listener.Addr(), err)
	}
	return nil
}

// AnnounceDrain makes every response close its connection; new connections are still served. Parked long polls are answered at
// once.
func (e *Edge) AnnounceDrain() {
	e.draining.Store(true)
	e.polls.Drain()
}

var errDraining = errors.New("the gateway is shutting down")

// Draining is a readiness check that fails from AnnounceDrain on.
func (e *Edge) Draining(context.Context) error {
	if e.draining.Load() {
		return errDraining
	}
	return nil
}

// Drain stops accepting, closes idle connections, and waits for requests in flight until ctx ends.
func (e *Edge) Drain(ctx context.Context) error {
	e.AnnounceDrain()
	defer e.connLimiter.WaitRejections()
	if err := e.server.ShutdownWithContext(ctx); err != nil {
		return fmt.Errorf("drain client connections: %w", err)
	}
	return nil
}

// handleExpect decides whether a client that sent Expect: 100-continue may send its body. It returns 100, or the status of the
// rejection that it has written.
func (e *Edge) handleExpect(ctx *fasthttp.RequestCtx) (status int) {
	status = fasthttp.StatusInternalServerError // in case authenticate panics
	defer func() {
		if status != fasthttp.StatusContinue {
			lingerOnClose(ctx) // fasthttp closes the connection, and the client may be sending its body
		}
	}()
	x := e.begin(ctx, time.Now())
	defer e.end(x)
	if refusal := e.authenticate(x); refusal != nil {
		x.writeReply(refusal)
		return refusal.status
	}
	x.awaitsBody = true
	return fasthttp.StatusContinue
}
