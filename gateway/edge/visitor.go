package edge

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

const (
	// lingerTime and lingerBytes bound what is still read of a request after its refusal.
	lingerTime  = time.Second
	lingerBytes = 4 << 20
	// sendBuffer bounds what the kernel holds of an answer for a client that does not read it.
	sendBuffer = 256 << 10
	// maxPiece is how much of an answer the client is sent between two looks at how fast it reads.
	maxPiece = 256 << 10
	// eager says that in one of so many reads a connection does not let others run first, and so mostly waits in the poller. The
	// scheduler looks there only when nobody is ready to run, or 10 ms later: clients that ask again at once would have the
	// gateway to themselves for so long.
	eager = 8
)

// visitor is a client's connection. All but Close is for the one goroutine that serves it.
type visitor struct {
	net.Conn
	tcp  *net.TCPConn
	door *door
	// client is what shares its bound of connections.
	client netip.Addr
	// inside says that the door counts it.
	inside atomic.Bool

	// heard says that the client has sent anything at all, and late that the rest of its request did not come in time.
	heard, late bool
	// reads counts what has been read from it.
	reads uint
	// end is when the answer under way must have been read at the latest; zero where none has begun since a request's last
	// bytes. Written is how much of it the client has taken so far, waited how long it took for that.
	end     time.Time
	written int64
	waited  time.Duration

	// unread says that the connection closes with some of a request unread, stuck that it closes with an answer unread.
	unread, stuck atomic.Bool
}

// visitorOf is the connection of a request; nil where there is none, in benchmarks.
func visitorOf(ctx *fasthttp.RequestCtx) *visitor {
	v, _ := ctx.Conn().(*visitor)
	return v
}

// linger says that the connection of this request closes with some of it unread.
func linger(ctx *fasthttp.RequestCtx) {
	if v := visitorOf(ctx); v != nil {
		v.unread.Store(true)
	}
}

// Read ends a connection that never said anything as if its client had hung up: there is no request that could be answered,
// counted or logged.
func (v *visitor) Read(p []byte) (int, error) {
	if v.reads++; v.reads%eager != 0 {
		// Whoever is ready to run goes first: in the meantime the next request may come, and the wait for it is spared.
		runtime.Gosched()
	}
	n, err := v.Conn.Read(p)
	v.end = time.Time{}
	switch {
	case n > 0:
		v.heard = true
	case err != nil && !v.heard:
		return n, io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF // at the other, fasthttp can drop answers that it has not sent yet
	case isTimeout(err):
		v.late = true
	}
	return n, err
}

// SetWriteDeadline begins an answer that must have been read by then.
func (v *visitor) SetWriteDeadline(end time.Time) error {
	v.end, v.written, v.waited = end, 0, 0
	return nil
}

// Write sends a piece at a time, so that what the client has read of a long answer counts while it reads on.
func (v *visitor) Write(p []byte) (written int, err error) {
	for {
		n, err := v.writePiece(p[written:min(len(p), written+maxPiece)])
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// writePiece waits for the client no longer than its patience lasts, nor beyond the end of the answer's time.
func (v *visitor) writePiece(p []byte) (int, error) {
	began := time.Now()
	if v.end.IsZero() { // what fasthttp says outside of an answer, such as 100 Continue
		_ = v.SetWriteDeadline(began.Add(v.door.options.WriteTimeout))
	}
	due := v.end
	if o := &v.door.options; o.StreamRate > 0 {
		// Only what the client makes the gateway wait counts, not what core does.
		earned := time.Duration(float64(v.written) / float64(o.StreamRate) * float64(time.Second))
		if patience := began.Add(o.WriteTimeout + earned - v.waited); patience.Before(due) {
			due = patience
		}
	}
	if err := v.Conn.SetWriteDeadline(due); err != nil {
		return 0, err
	}
	n, err := v.Conn.Write(p)
	v.written += int64(n)
	v.waited += time.Since(began)
	if isTimeout(err) && v.stuck.CompareAndSwap(false, true) {
		v.door.slowReaders.Inc()
	}
	return n, err
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// Close lets the client read an answer that came before all of its request was read: it sends the end of the answer first
// and waits, within bounds, until the client has sent all it had to say. To close a connection with unread bytes on it, or
// before they arrive, resets it, and what the client has not read by then is lost with it (RFC 9112 section 9.6).
//
// A client that would not read its answer is reset, or the kernel would keep the rest for it.
func (v *visitor) Close() error {
	if v.unread.CompareAndSwap(true, false) && v.tcp.CloseWrite() == nil && v.tcp.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(v.tcp, lingerBytes)) // an error ends the wait as well
	}
	if v.stuck.Load() {
		_ = v.tcp.SetLinger(0) // it closes in any case
	}
	err := v.tcp.Close()
	if v.inside.CompareAndSwap(true, false) {
		v.door.conns.release(v.client)
	}
	return err
}

// turnedAway is the answer to a connection that may not come in.
type turnedAway struct {
	count prometheus.Counter
	// head and tail are the answer around its date and request id.
	head, tail []byte
}

func newTurnedAway(message string, count prometheus.Counter) turnedAway {
	body := encode(wire.Error{Code: wire.ServiceUnavailable, Message: message})
	return turnedAway{
		count: count,
		head: []byte("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nCache-Control: no-store\r\nRetry-After: 1" +
			"\r\nContent-Type: " + contentTypeJSON + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\nDate: "),
		tail: append([]byte("\r\n\r\n"), body...),
	}
}

func (t *turnedAway) answer() []byte {
	answer := make([]byte, 0, 512)
	answer = append(answer, t.head...)
	now := time.Now()
	answer = now.UTC().AppendFormat(answer, http.TimeFormat)
	answer = append(answer, "\r\n"+wire.HeaderRequestID+": "...)
	var id [36]byte
	writeUUIDv7(&id, now)
	answer = append(answer, id[:]...)
	return append(answer, t.tail...)
}

// dismiss answers why and closes.
func (v *visitor) dismiss(why *turnedAway) {
	_, _ = v.Write(why.answer()) // a client that is gone needs no answer
	_ = v.Close()
}
