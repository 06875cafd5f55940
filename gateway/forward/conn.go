package forward

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"intents.internal/gateway/cores"
	"intents.internal/gateway/deadline"
	"intents.internal/gateway/socket"
)

// lookEvery is how often an exchange whose answer has not come looks whether it still makes sense. The first look comes
// after that time too, so that quick answers cost none.
const lookEvery = 100 * time.Millisecond

// dialer makes the connections to one core.
type dialer struct {
	cores *cores.Set
	core  *cores.Core
	tls   *tls.Config // nil for none
}

func (d dialer) dial() (*conn, error) {
	c := &conn{cores: d.cores, core: d.core, epoch: d.core.Epoch()}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	// fasthttp's own dialer remembers for a minute where a name led: a core that was replaced may be elsewhere.
	plain, err := new(net.Dialer).DialContext(ctx, "tcp", d.core.Address)
	if err != nil {
		return nil, err
	}
	c.eye = socket.NewEye(plain)
	// Below TLS, which takes a write that timed out for the connection's end.
	c.Conn = deadline.New(plain)
	if d.tls != nil {
		secured := tls.Client(c.Conn, d.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = plain.Close()
			return nil, err
		}
		c.Conn, c.secured = secured, true
	}
	c.reader = bufio.NewReaderSize(c, headerBuffer)
	return c, nil
}

// conn is a connection to a core. One exchange at a time has it to itself.
type conn struct {
	net.Conn // with TLS if core speaks it, which secured says
	secured  bool
	reader   *bufio.Reader
	eye      *socket.Eye
	cores    *cores.Set
	core     *cores.Core
	// epoch is the core's from before the connection was made.
	epoch uint32
	pool  *pool
	// rested is since when no exchange has the connection.
	rested time.Time

	// What follows belongs to the exchange under way.

	terms terms
	// until is when the wait for the answer is next looked at.
	until time.Time
	// used says that other exchanges had the connection before.
	used bool
	// sent says that something of the request may have left.
	sent bool
	// given is why the wait for the answer was given up, nil if it was not.
	given error
	// body is the rest of the answer if it streams.
	body *Stream
}

// usable reports whether core has not closed the connection, as far as this side knows: nothing has arrived on it, and core
// has not been down since it was made.
func (c *conn) usable() bool {
	if !c.used {
		return true
	}
	if c.epoch != c.core.Epoch() {
		return false
	}
	state := c.eye.Look()
	return state == socket.Quiet || state == socket.Unknown
}

// send writes the request.
func (c *conn) send(text []byte, t terms) error {
	c.used, c.sent, c.given, c.terms = c.used || c.sent, false, nil, t
	c.until = t.began.Add(lookEvery)
	if err := c.SetWriteDeadline(t.deadline); err != nil {
		return err
	}
	n, err := c.Write(text)
	c.sent = n > 0 || c.secured
	return err
}

// done gives the connection back after an exchange, or closes it where core said that it will.
func (c *conn) done(now time.Time, last bool) {
	c.terms.peer = nil // of a request that is over
	if last {
		c.core.Suspect()
	}
	if last || c.reader.Buffered() > 0 {
		c.drop()
		return
	}
	c.used = true
	c.pool.give(c, now)
}

// drop closes the connection.
func (c *conn) drop() {
	c.terms.peer = nil
	c.pool.drop(c)
}

// Read bounds the wait for the answer as a whole, or for each next part of it where it is streamed. It makes an answer
// that stops short an error: some parsers take a connection that closes for the body's end.
func (c *conn) Read(p []byte) (int, error) {
	last := c.terms.deadline
	if c.body != nil {
		last = time.Now().Add(c.body.patience)
		c.until = last
	}
	for {
		if last.Before(c.until) {
			c.until = last
		}
		if err := c.SetReadDeadline(c.until); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(p)
		if err == nil {
			return n, nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		now := time.Now()
		if !now.Before(last) {
			return 0, err
		}
		if c.given = c.giveUp(); c.given != nil {
			return 0, c.given
		}
		c.until = now.Add(lookEvery)
	}
}

// giveUp is why to wait no longer for the answer, nil to wait on.
//
// A client that has closed its sending side only, to show the end of its requests, is taken for gone: the two look the
// same until something is sent, and net/http and nginx take it so too. It loses slow answers alone.
func (c *conn) giveUp() error {
	if c.terms.peer != nil && c.terms.peer.Gone() {
		return ErrClientGone
	}
	if c.terms.repeatable && c.core.Down() && c.cores.Others(c.core) {
		return errAbandoned
	}
	return nil
}

// cause turns what went wrong after something was sent into one of this package's errors.
func (c *conn) cause(err error) error {
	var timeout interface{ Timeout() bool }
	switch {
	case c.given != nil:
		return c.given
	case errors.Is(err, errUnfit):
		return errUnfit
	case errors.As(err, &timeout) && timeout.Timeout():
		return ErrTimeout
	default:
		return ErrBroken
	}
}
