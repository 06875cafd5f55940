package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"intents.internal/gateway/conn"
	"intents.internal/gateway/cores"
)

// dialTimeout is short because core is near.
const dialTimeout = time.Second

// checkInterval is how often a wait for the response checks whether to abort. A response that begins within it costs no check.
const checkInterval = 100 * time.Millisecond

// dialer opens connections to one core.
type dialer struct {
	transport *transport
	tls       *tls.Config // nil for none
}

// dial opens a connection for a request with this deadline. If another core is up, it leaves half of the time to that one. It returns
// errGivenBack if the core is ejected meanwhile and another one is up.
func (d dialer) dial(ctx context.Context, deadline time.Time) (*coreConn, error) {
	if d.transport.core.OtherUp() {
		now := time.Now()
		deadline = now.Add(deadline.Sub(now) / 2)
	}
	ctx, done := d.transport.dials.watch(ctx)
	defer done()
	c, err := d.dialUntil(ctx, deadline)
	if err != nil && errors.Is(context.Cause(ctx), errGivenBack) {
		return nil, errGivenBack
	}
	return c, err
}

// dialUntil opens a connection for an attempt with this deadline.
func (d dialer) dialUntil(ctx context.Context, deadline time.Time) (*coreConn, error) {
	left := time.Until(deadline)
	ctx, cancel := context.WithTimeout(ctx, min(left, dialTimeout))
	defer cancel()
	c, err := d.dialContext(ctx)
	if err != nil && left < dialTimeout && isTimeout(err) {
		return nil, fmt.Errorf("%w: %w", errNoTime, err)
	}
	return c, err
}

func (d dialer) dialContext(ctx context.Context) (*coreConn, error) {
	core := d.transport.core
	c := &coreConn{core: core, generation: core.Generation()}
	// fasthttp's own dialer caches addresses for a minute, but a replaced core may have another address.
	plain, err := new(net.Dialer).DialContext(ctx, "tcp", core.Address)
	if err != nil {
		return nil, err
	}
	c.plain, c.peeker = plain, conn.NewPeeker(plain)
	// The deadlines are below TLS, because TLS treats a write timeout as the end of the connection.
	c.Conn = conn.NewDeadlineConn(plain)
	if d.tls != nil {
		secured := tls.Client(c.Conn, d.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = plain.Close()
			return nil, err
		}
		c.Conn, c.isTLS = secured, true
	}
	c.reader = bufio.NewReaderSize(c, maxHeaderBytes)
	return c, nil
}

// coreConn is a connection to a core, used by one exchange at a time.
type coreConn struct {
	net.Conn // TLS if isTLS
	isTLS    bool
	// plain is below TLS and the deadlines, so any goroutine may close it.
	plain  net.Conn
	reader *bufio.Reader
	peeker *conn.Peeker
	core   *cores.Core
	// generation is the core's generation, read before the connection was opened.
	generation uint32
	pool       *pool
	// idleSince is the end of the last exchange.
	idleSince time.Time

	// The fields below belong to the current exchange.

	options attemptOptions
	// unwatch ends the watch over the exchange's context, and reports whether the connection is not closed for it; nil for none.
	unwatch func() bool
	// used is set if the connection has carried an earlier exchange.
	used bool
	// sent is set once a part of the request may have been sent.
	sent bool
	// abortErr is why the wait for the response was aborted, nil if it was not.
	abortErr error
}

// usable reports whether core appears not to have closed the connection: nothing was received on it, and the core has not been
// down since the connection was opened.
func (c *coreConn) usable() bool {
	if !c.used {
		return true
	}
	if c.generation != c.core.Generation() {
		return false
	}
	state := c.peeker.Peek()
	return state == conn.Idle || state == conn.Unknown
}

// send writes the request. It returns errNoTime if the deadline has passed before.
func (c *coreConn) send(request []byte, options attemptOptions) error {
	c.used, c.sent, c.abortErr, c.options = c.used || c.sent, false, nil, options
	if options.ctx.Done() != nil {
		c.unwatch = context.AfterFunc(options.ctx, func() { _ = c.plain.Close() })
	}
	if !time.Now().Before(options.deadline) {
		return errNoTime
	}
	if err := c.SetWriteDeadline(options.deadline); err != nil {
		return err
	}
	n, err := c.Write(request)
	c.sent = n > 0 || c.isTLS
	return err
}

// release returns the connection to the pool after an exchange, or closes it if core announced a close.
func (c *coreConn) release(now time.Time, closing bool) {
	if closing {
		c.core.ProbeNow()
	}
	if isOpen := c.endExchange(); !isOpen || closing || c.reader.Buffered() > 0 {
		c.pool.discard(c)
		return
	}
	c.used = true
	c.pool.put(c, now)
}

// discard closes the connection.
func (c *coreConn) discard() {
	c.endExchange()
	c.pool.discard(c)
}

// endExchange drops what belongs to the request, which has ended, and reports whether its context has not closed the connection.
func (c *coreConn) endExchange() (isOpen bool) {
	unwatch := c.unwatch
	c.options.waiter, c.options.ctx, c.unwatch = nil, nil, nil
	return unwatch == nil || unwatch()
}

// await waits for so many bytes of the response, until the exchange's deadline. The same deadline bounds the rest of the response.
func (c *coreConn) await(bytes int) error {
	deadline := c.options.deadline
	for check := c.options.began.Add(checkInterval); ; check = time.Now().Add(checkInterval) {
		if deadline.Before(check) {
			check = deadline
		}
		if err := c.SetReadDeadline(check); err != nil {
			return err
		}
		_, err := c.reader.Peek(bytes)
		switch {
		case err == nil:
			return c.SetReadDeadline(deadline)
		case !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(deadline):
			return err
		}
		if c.abortErr = c.checkAbort(); c.abortErr != nil {
			return c.abortErr
		}
	}
}

// Read returns io.ErrUnexpectedEOF for io.EOF, which some parsers treat as the end of the body.
func (c *coreConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// checkAbort returns why to abort the wait for the response, nil to continue.
func (c *coreConn) checkAbort() error {
	if c.options.waiter != nil {
		if err := c.options.waiter.tick(); err != nil {
			return err
		}
	}
	if c.options.replayable && c.core.Down() && c.core.OtherUp() {
		return errUpstreamDown
	}
	return nil
}

// wrapErr converts an error after something was sent into one of this package's errors.
func (c *coreConn) wrapErr(err error) error {
	switch {
	case c.abortErr != nil:
		return c.abortErr
	case errors.Is(err, errInvalidResponse):
		return err
	case isTimeout(err):
		return ErrTimeout
	default:
		return ErrBroken
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
