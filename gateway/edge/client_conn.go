package edge

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"intents.internal/gateway/deadline"
	"intents.internal/gateway/socket"
	"intents.internal/pkg/wire"
)

const (
	// lingerTime and lingerBytes bound what is read of a request after its refusal.
	lingerTime  = time.Second
	lingerBytes = 4 << 20
	// sendBuffer bounds what the kernel buffers of a response for a client that does not read it.
	sendBuffer = 256 << 10
	// maxWrite is how much of a response is written between two checks of the client's reading rate.
	maxWrite = 256 << 10
	// pollEvery makes one in so many reads skip the yield, and so mostly wait in the network poller. The scheduler polls it
	// only when no goroutine is ready to run, or after 10 ms: clients that send their next request at once would keep the
	// others waiting for so long.
	pollEvery = 8
	// aheadBytes is how much is read with the first byte of a request: most requests as a whole.
	aheadBytes = 1 << 10
)

var aheadBuffers = sync.Pool{New: func() any { return new([aheadBytes]byte) }}

// clientConn is a client's connection. All methods but Close are for the one goroutine that serves it.
type clientConn struct {
	*deadline.Conn
	tcp     *net.TCPConn
	limiter *connLimiter
	// clientPrefix is the owner in the limiter's quota.
	clientPrefix netip.Addr
	// peeker is made for the first call of Disconnected.
	peeker *socket.Peeker
	// counted says that the limiter's quota counts the connection.
	counted atomic.Bool

	// gotBytes says that the client has sent anything, readTimedOut that a request did not arrive within ReadTimeout.
	gotBytes, readTimedOut bool
	// reads counts the reads of the socket.
	reads uint
	// ahead is what was read with the first byte of a request, aheadBuffer its buffer, nil for none.
	ahead       []byte
	aheadBuffer *[aheadBytes]byte
	// deadline is when the current response must have been read, zero before a request's first response. written is how much
	// of it the client has taken, and writeTime how long that took.
	deadline  time.Time
	written   int64
	writeTime time.Duration
	// gathers makes Write keep what it is given, in header, for writeBody.
	gathers bool
	header  []byte

	// lingerOnClose says that the connection closes with a part of a request unread, writeTimedOut that it closes with a part
	// of a response unread.
	lingerOnClose, writeTimedOut atomic.Bool
}

// connOf is the connection of a request, nil in benchmarks.
func connOf(ctx *fasthttp.RequestCtx) *clientConn {
	c, _ := ctx.Conn().(*clientConn)
	return c
}

// lingerOnClose says that the connection of this request closes with a part of it unread.
func lingerOnClose(ctx *fasthttp.RequestCtx) {
	if c := connOf(ctx); c != nil {
		c.lingerOnClose.Store(true)
	}
}

// Read reads the socket, or what was read ahead of it.
//
// Before each request fasthttp asks for one byte, so that neither an idle connection nor a request that waits for its response
// holds the buffers of a request (ReduceMemoryUsage). That byte is read together with what comes with it, or each request would
// cost a system call more.
func (c *clientConn) Read(p []byte) (int, error) {
	if c.aheadBuffer != nil {
		return c.readAhead(p), nil
	}
	if len(p) != 1 {
		return c.readSocket(p)
	}
	buffer, _ := aheadBuffers.Get().(*[aheadBytes]byte)
	n, err := c.readSocket(buffer[:])
	c.ahead, c.aheadBuffer = buffer[:n], buffer
	return c.readAhead(p), err
}

// readAhead takes what was read ahead, of which there may be nothing.
func (c *clientConn) readAhead(p []byte) int {
	n := copy(p, c.ahead)
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		aheadBuffers.Put(c.aheadBuffer)
		c.ahead, c.aheadBuffer = nil, nil
	}
	return n
}

// readSocket returns io.EOF for the timeout of a connection that has sent nothing: there is no request to answer, count or log.
func (c *clientConn) readSocket(p []byte) (int, error) {
	if c.reads++; c.reads%pollEvery != 0 {
		// Goroutines that are ready run first; meanwhile the next request may come, which saves the wait for it.
		runtime.Gosched()
	}
	n, err := c.Conn.Read(p)
	c.deadline = time.Time{}
	switch {
	case n > 0:
		c.gotBytes = true
	case err != nil && !c.gotBytes:
		return n, io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF // after io.EOF fasthttp may drop responses that it has not sent yet
	case isTimeout(err):
		c.readTimedOut = true
	}
	return n, err
}

// SetWriteDeadline begins a response that must have been read by the deadline.
func (c *clientConn) SetWriteDeadline(deadline time.Time) error {
	c.deadline, c.written, c.writeTime = deadline, 0, 0
	return nil
}

// Write writes in parts, so that what the client has read of a long response extends its time.
func (c *clientConn) Write(p []byte) (written int, err error) {
	if c.gathers {
		c.header = p
		return len(p), nil
	}
	for {
		n, err := c.writePart(nil, p[written:min(len(p), written+maxWrite)])
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// writeBody writes what the writer of this connection has buffered, the response's header, together with the body: in one system
// call if they are no longer than maxWrite. It returns how much of the body was written.
func (c *clientConn) writeBody(buffered *bufio.Writer, body []byte) (int, error) {
	c.gathers = true
	err := buffered.Flush()
	header := c.header // it stays in the writer's buffer, which nothing changes before this returns
	c.gathers, c.header = false, nil
	if err != nil {
		return 0, err
	}
	n, err := c.writePart(header, body[:min(len(body), maxWrite-len(header))])
	n = max(0, n-len(header))
	if err != nil || n == len(body) {
		return n, err
	}
	rest, err := c.Write(body[n:])
	return n + rest, err
}

// writePart writes the header, which may be empty, and p. It waits for the client until the response's deadline, or until the client is
// WriteTimeout behind StreamRate.
func (c *clientConn) writePart(header, p []byte) (n int, err error) {
	began := time.Now()
	if c.deadline.IsZero() { // fasthttp writes outside of a response, such as 100 Continue
		_ = c.SetWriteDeadline(began.Add(c.limiter.options.WriteTimeout))
	}
	due := c.deadline
	if o := &c.limiter.options; o.StreamRate > 0 {
		// The time that core takes does not count.
		earned := time.Duration(float64(c.written) / float64(o.StreamRate) * float64(time.Second))
		if patience := began.Add(o.WriteTimeout + earned - c.writeTime); patience.Before(due) {
			due = patience
		}
	}
	if err := c.Conn.SetWriteDeadline(due); err != nil {
		return 0, err
	}
	if len(header) > 0 {
		n, err = c.WriteBuffers(net.Buffers{header, p})
	} else {
		n, err = c.Conn.Write(p)
	}
	c.written += int64(n)
	c.writeTime += time.Since(began)
	if isTimeout(err) && c.writeTimedOut.CompareAndSwap(false, true) {
		c.limiter.slowReaders.Inc()
	}
	return n, err
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// Disconnected reports whether the client has closed its connection, or at least its sending side: no one waits for a response
// then. A client that has already sent its next requests is not known to be disconnected.
func (c *clientConn) Disconnected() bool {
	if c.peeker == nil {
		c.peeker = socket.NewPeeker(c.tcp)
	}
	return c.peeker.Peek() == socket.Closed
}

// Close lets the client read a response that came before all of its request was read: it closes the sending side and reads the
// rest of the request, up to lingerTime and lingerBytes. A connection that is closed with unread bytes is reset, and the
// client loses the part of the response that it has not read (RFC 9112 section 9.6).
//
// A client that did not read its response in time is reset, since the kernel would keep the rest for it.
func (c *clientConn) Close() error {
	if c.lingerOnClose.CompareAndSwap(true, false) && c.tcp.CloseWrite() == nil && c.tcp.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c.tcp, lingerBytes)) // an error ends the wait too
	}
	if c.writeTimedOut.Load() {
		_ = c.tcp.SetLinger(0) // an error changes nothing, the connection closes
	}
	err := c.tcp.Close()
	if c.counted.CompareAndSwap(true, false) {
		c.limiter.conns.release(c.clientPrefix)
	}
	return err
}

// rejection is the response to a connection over the limits.
type rejection struct {
	count prometheus.Counter
	// head and tail surround the date and the request id.
	head, tail []byte
}

func newRejection(message string, count prometheus.Counter) rejection {
	body := encode(wire.Error{Code: wire.ServiceUnavailable, Message: message})
	return rejection{
		count: count,
		head: []byte("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nCache-Control: no-store\r\nRetry-After: 1" +
			"\r\nContent-Type: " + contentTypeJSON + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\nDate: "),
		tail: append([]byte("\r\n\r\n"), body...),
	}
}

func (r *rejection) response() []byte {
	response := make([]byte, 0, 512)
	response = append(response, r.head...)
	now := time.Now()
	response = now.UTC().AppendFormat(response, http.TimeFormat)
	response = append(response, "\r\n"+wire.HeaderRequestID+": "...)
	var id [36]byte
	writeUUIDv7(&id, now)
	response = append(response, id[:]...)
	return append(response, r.tail...)
}

// reject writes the response and closes the connection.
func (c *clientConn) reject(r *rejection) {
	_, _ = c.Write(r.response()) // an error means that the client is gone
	_ = c.Close()
}
