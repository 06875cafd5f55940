// Package conn owns the TCP connections of the gateway: it accepts and bounds those of clients, disconnects clients that read too
// slowly, moves deadlines cheaply, and detects that the other end has disconnected.
package conn

import (
	"bufio"
	"encoding/json"
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

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/wire"
)

const (
	// lingerTime and lingerBytes bound what is read of a request after it was rejected.
	lingerTime  = time.Second
	lingerBytes = 4 << 20
	// sendBuffer is the kernel's send buffer of a client connection, in bytes.
	sendBuffer = 256 << 10
	// maxWrite is how much of a response is written between two checks of the client's read rate.
	maxWrite = 256 << 10
	// pollEvery is how often a read skips the yield: one read in pollEvery. Such a read usually blocks in the network poller. The
	// scheduler polls the network only when no goroutine is runnable, or after 10 ms, so clients that send their next request at
	// once would delay the others by up to 10 ms.
	pollEvery = 8
	// aheadBytes is how much is read with the first byte of a request. Most requests fit in it.
	aheadBytes = 1 << 10
	// replyBytes fits the body of a 429 with the longest request id.
	replyBytes = 384
)

var aheadBuffers = sync.Pool{New: func() any { return new([aheadBytes]byte) }}

// Client is a client's connection. Only the goroutine that serves it may call its methods, except Close.
type Client struct {
	*DeadlineConn
	tcp     *net.TCPConn
	limiter *Limiter
	// address is the client's or its proxy's. Its prefix is the connection's owner in the limiter's quota.
	address netip.Addr
	// peeker is created by the first call of Disconnected.
	peeker *Peeker
	// counted is set while the limiter's quota counts the connection.
	counted atomic.Bool

	// gotBytes is set once the client has sent a byte, readTimedOut if a request did not arrive within ReadTimeout.
	gotBytes, readTimedOut bool
	// reads counts the reads of the socket.
	reads uint
	// ahead is what was read with the first byte of a request. aheadBuffer is its buffer, nil if nothing was read ahead.
	ahead       []byte
	aheadBuffer *[aheadBytes]byte
	// replyBuffer is ReplyBuffer's, nil before its first call.
	replyBuffer *[replyBytes]byte
	// responseTimeout replaces the server's write timeout for the next response, 0 for none.
	responseTimeout time.Duration
	// deadline is when the client must have read the current response, zero before the first response. written is how many bytes
	// of it were written, and writeTime how long the writes took.
	deadline  time.Time
	written   int64
	writeTime time.Duration
	// gathers makes Write store its argument in header, for WriteBody.
	gathers bool
	header  []byte

	// lingerOnClose is set if the connection closes before a request was read completely, writeTimedOut if it closes before a
	// response was written completely.
	lingerOnClose, writeTimedOut atomic.Bool
}

// Address is the address of the other end: the client or its proxy.
func (c *Client) Address() netip.Addr { return c.address }

// ReadTimedOut reports whether a request did not arrive within ReadTimeout.
func (c *Client) ReadTimedOut() bool { return c.readTimedOut }

// LingerOnClose makes Close linger, because a part of the request is unread.
func (c *Client) LingerOnClose() { c.lingerOnClose.Store(true) }

// Read reads the socket, or what was read ahead of it.
//
// Before each request fasthttp reads one byte, so that neither an idle connection nor a request that waits for its response holds
// a read buffer (ReduceMemoryUsage). Read fetches more than that byte at once, which saves one system call per request.
func (c *Client) Read(p []byte) (int, error) {
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

// readAhead copies and consumes bytes that were read ahead. There may be none.
func (c *Client) readAhead(p []byte) int {
	n := copy(p, c.ahead)
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		aheadBuffers.Put(c.aheadBuffer)
		c.ahead, c.aheadBuffer = nil, nil
	}
	return n
}

// readSocket returns io.EOF if a connection times out that has sent nothing: there is no request to answer, count or log.
func (c *Client) readSocket(p []byte) (int, error) {
	if c.reads++; c.reads%pollEvery != 0 {
		// Other runnable goroutines run first. The next request may arrive meanwhile, so the read need not block.
		runtime.Gosched()
	}
	n, err := c.DeadlineConn.Read(p)
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

// ReplyBuffer returns an empty buffer for the body of the current response. The next request on the connection overwrites it.
func (c *Client) ReplyBuffer() []byte {
	if c.replyBuffer == nil {
		c.replyBuffer = new([replyBytes]byte)
	}
	return c.replyBuffer[:0]
}

// SetResponseTimeout sets how long the client may take to read the next response, instead of the server's write timeout.
func (c *Client) SetResponseTimeout(d time.Duration) { c.responseTimeout = d }

// SetWriteDeadline starts a response that the client must have read by the deadline, or within the time of SetResponseTimeout.
func (c *Client) SetWriteDeadline(deadline time.Time) error {
	if c.responseTimeout > 0 {
		deadline = time.Now().Add(c.responseTimeout)
	}
	c.deadline, c.written, c.writeTime, c.responseTimeout = deadline, 0, 0, 0
	return nil
}

// Write writes in parts, so that each part that the client reads extends the deadline at StreamRate.
func (c *Client) Write(p []byte) (written int, err error) {
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

// WriteBody writes the header that the writer of this connection has buffered, and then the body. It uses one system call if both
// fit into maxWrite. It returns how much of the body was written.
func (c *Client) WriteBody(buffered *bufio.Writer, body []byte) (int, error) {
	c.gathers = true
	err := buffered.Flush()
	header := c.header // valid until this returns: the writer's buffer is not changed before
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

// writePart writes the header, which may be empty, and p. It blocks until the response's deadline, or until the client is
// WriteTimeout behind StreamRate.
func (c *Client) writePart(header, p []byte) (n int, err error) {
	began := time.Now()
	if c.deadline.IsZero() { // fasthttp also writes outside of a response, such as 100 Continue
		_ = c.SetWriteDeadline(began.Add(c.limiter.options.WriteTimeout))
	}
	due := c.deadline
	if o := &c.limiter.options; o.StreamRate > 0 {
		// The time that core takes is not counted.
		earned := time.Duration(float64(c.written) / float64(o.StreamRate) * float64(time.Second))
		if patience := began.Add(o.WriteTimeout + earned - c.writeTime); patience.Before(due) {
			due = patience
		}
	}
	if err := c.DeadlineConn.SetWriteDeadline(due); err != nil {
		return 0, err
	}
	if len(header) > 0 {
		n, err = c.WriteBuffers(net.Buffers{header, p})
	} else {
		n, err = c.DeadlineConn.Write(p)
	}
	c.written += int64(n)
	c.writeTime += time.Since(began)
	if isTimeout(err) && c.writeTimedOut.CompareAndSwap(false, true) {
		c.limiter.slowReaders.Inc()
	}
	return n, err
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// Disconnected reports whether the client has closed its connection or the sending side of it. It reports false while pipelined
// requests are unread.
func (c *Client) Disconnected() bool {
	if c.peeker == nil {
		c.peeker = NewPeeker(c.tcp)
	}
	return c.peeker.Peek() == Closed
}

// Close lets the client read a response that was sent before its request was read completely: it closes the sending side and
// reads the rest of the request, up to lingerTime and lingerBytes. Closing a connection with unread bytes resets it, and the
// client loses the part of the response that it has not read (RFC 9112 section 9.6).
//
// Close resets the connection if a write timed out, because the kernel would keep the unsent bytes.
func (c *Client) Close() error {
	if c.lingerOnClose.CompareAndSwap(true, false) && c.tcp.CloseWrite() == nil && c.tcp.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c.tcp, lingerBytes)) // an error ends the linger too
	}
	if c.writeTimedOut.Load() {
		_ = c.tcp.SetLinger(0) // best effort: the connection closes anyway
	}
	err := c.tcp.Close()
	if c.counted.CompareAndSwap(true, false) {
		c.limiter.conns.Release(ClientPrefix(c.address))
	}
	return err
}

// rejection is the response to a connection over the limits.
type rejection struct {
	count prometheus.Counter
	// head is the part before Retry-After, the date and the request id, body the body without the id.
	head, body []byte
}

func newRejection(message string, count prometheus.Counter) rejection {
	body, err := json.Marshal(wire.Error{Code: wire.ServiceUnavailable, Message: message})
	if err != nil {
		panic(err) // cannot fail
	}
	length := len(wire.AppendErrorBody(nil, body, uuid.Nil.String()))
	return rejection{
		count: count,
		head: []byte("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nCache-Control: no-store" +
			"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(length) + "\r\nRetry-After: "),
		body: body,
	}
}

func (r *rejection) response() []byte {
	id := uuid.Must(uuid.NewV7()).String()
	response := make([]byte, 0, 512)
	response = append(response, r.head...)
	response = strconv.AppendInt(response, int64(wire.RetryAfter(http.StatusServiceUnavailable, 1)), 10)
	response = append(response, "\r\nDate: "...)
	response = time.Now().UTC().AppendFormat(response, http.TimeFormat)
	response = append(response, "\r\n"+wire.HeaderRequestID+": "...)
	response = append(response, id...)
	response = append(response, "\r\n\r\n"...)
	return wire.AppendErrorBody(response, r.body, id)
}

// reject writes the response and closes the connection.
func (c *Client) reject(r *rejection) {
	_, _ = c.Write(r.response()) // an error means that the client disconnected
	_ = c.Close()
}
