package upstream

import (
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

// errBatchRejected means that the core has carried out no request of the batch; each is to be sent alone.
var errBatchRejected = errors.New("the core serves no batches")

// batch is requests that were sent together. One member after the other reads its responses.
type batch struct {
	client *Client
	group  *group
	conn   *coreConn
	// members are by number, nil once they have their result; left is how many have none.
	members []*member
	left    int
	// reader is the member that reads. It is not told its result, which is in readerErr.
	reader    *member
	readerErr error
	// hasLane is set until the lane was handed on.
	hasLane bool
	// awaits is set while nothing of the next response has arrived.
	awaits bool

	head fasthttp.ResponseHeader
	// chunks is the body, nil before the header has arrived. whole is set if its length was known.
	chunks io.Reader
	whole  bool
	// request is the encoded batch, message one response.
	request, message []byte
}

var batches = sync.Pool{New: func() any { return &batch{} }}

// release returns the batch to the pool, after the last use of its connection.
func (b *batch) release() {
	clear(b.members)
	*b = batch{members: b.members[:0], request: b.request[:0], message: b.message[:0]}
	batches.Put(b)
}

// doBatch sends requests as one, and returns the result of the first, which leads.
func (c *Client) doBatch(g *group, of []*member) error {
	b, _ := batches.Get().(*batch)
	b.client, b.group, b.hasLane, b.left = c, g, true, len(of)
	b.members = append(b.members, of...)
	c.batched.Observe(float64(len(of)))
	leader := of[0]
	b.encode(g.core)
	options := leader.options
	options.deadline, options.replayable, options.peer = b.deadline(), false, b
	x := exchange{core: g.core}
	if err := c.send(&x, leader.request, b.request, options); err != nil {
		b.reader = leader
		b.finishAll(err)
		err = b.readerErr
		g.handOn()
		b.release()
		return err
	}
	b.conn = x.conn
	return b.read(leader)
}

// encode encodes the POST with all requests.
func (b *batch) encode(core *Core) {
	length := 0
	for _, m := range b.members {
		length += wire.FrameHeadBytes + len(*m.buffer)
	}
	b.request = append(b.request, "POST "+wire.PathBatch+" HTTP/1.1\r\n"...)
	b.request = appendField(b.request, asText, fasthttp.HeaderHost, core.URL.Host)
	b.request = append(b.request, b.client.secret...)
	b.request = append(b.request, "Content-Type: application/octet-stream\r\nContent-Length: "...)
	b.request = strconv.AppendInt(b.request, int64(length), 10)
	b.request = append(b.request, "\r\n\r\n"...)
	for number, m := range b.members {
		b.request = wire.AppendFrame(b.request, number, *m.buffer)
	}
}

// deadline is the earliest one of the members without a result.
func (b *batch) deadline() (earliest time.Time) {
	for _, m := range b.members {
		if m != nil && (earliest.IsZero() || m.options.deadline.Before(earliest)) {
			earliest = m.options.deadline
		}
	}
	return earliest
}

// read reads responses until the reader has its own, which it returns. Then it passes the reading on.
func (b *batch) read(reader *member) error {
	b.reader, b.readerErr = reader, nil
	for slices.Contains(b.members, reader) {
		err := b.next()
		switch {
		case err == nil:
		case b.awaits && isTimeout(err) && b.expire():
		case b.conn.abortErr != nil && !slices.Contains(b.members, reader): // the reader's client has gone, those of others have not
		default:
			b.finishAll(b.conn.wrapErr(err))
		}
	}
	if b.hasLane {
		b.group.handOn()
		b.hasLane = false
	}
	err := b.readerErr
	if b.left == 0 {
		b.end()
		return err
	}
	for _, m := range b.members {
		if m != nil {
			m.batch = b
			m.told <- read // this goroutine may not use the batch any more
			break
		}
	}
	return err
}

// next waits for a response and gives it to its member.
func (b *batch) next() error {
	b.conn.abortErr, b.conn.options.deadline = nil, b.deadline()
	b.awaits = true
	if err := b.await(); err != nil {
		return err
	}
	b.awaits = false
	if b.chunks == nil {
		return b.readHead()
	}
	var head [wire.FrameHeadBytes]byte
	if _, err := io.ReadFull(b.chunks, head[:]); err != nil {
		return err
	}
	number, length, err := wire.ParseFrameHead(head[:], len(b.members), maxBufferedBody+maxHeaderBytes)
	if err != nil {
		return errInvalidResponse
	}
	b.message = slices.Grow(b.message[:0], length)[:length]
	if _, err := io.ReadFull(b.chunks, b.message); err != nil {
		return err
	}
	m := b.members[number]
	if m == nil {
		return nil // it had no time left
	}
	if err := m.response.parse(b.message, m.request); err != nil {
		return errInvalidResponse
	}
	b.finish(number, nil, time.Now())
	return nil
}

// await waits for the first byte of the header or of a frame. The line break at the end of the chunk before is not it.
func (b *batch) await() error {
	if err := b.conn.await(1); err != nil {
		return err
	}
	if next, err := b.conn.reader.Peek(1); err != nil || b.chunks == nil || b.whole || next[0] != '\r' {
		return err
	}
	return b.conn.await(len("\r\n0"))
}

// readHead reads the header of core's response.
func (b *batch) readHead() error {
	if err := b.conn.readHead(&b.head); err != nil {
		return err
	}
	switch length := b.head.ContentLength(); {
	case b.head.StatusCode() == fasthttp.StatusUnauthorized:
		return errSecretRejected
	case b.head.StatusCode() != fasthttp.StatusOK:
		b.group.core.noBatches()
		return errBatchRejected
	case length == chunked:
		b.chunks = httputil.NewChunkedReader(b.conn.reader)
	case length < 0:
		return errInvalidResponse
	default:
		b.chunks, b.whole = io.LimitReader(b.conn.reader, int64(length)), true
	}
	return nil
}

// maxStatus is the largest status that HTTP/1.1 can write.
const maxStatus = 999

// parse reads a response from its message. The body is what follows the fields.
func (p *Response) parse(message []byte, r *Request) error {
	p.session = r.Session
	p.Head.Reset()
	p.Head.SetNoDefaultContentType(true) // otherwise fasthttp sends its default content type
	status := 0
	for {
		name, value, rest, err := wire.NextField(message)
		if err != nil {
			return err
		}
		message = rest
		switch {
		case len(name) == 0:
			if status < fasthttp.StatusOK || status > maxStatus {
				return errInvalidResponse
			}
			p.HasNoBody = status == fasthttp.StatusNoContent || status == fasthttp.StatusNotModified
			p.Body = append(p.Body[:0], rest...)
			return nil
		case string(name) == wire.FieldStatus:
			if status, err = fasthttp.ParseUint(value); err != nil {
				return err
			}
			p.Head.SetStatusCode(status)
		case bytes.ContainsAny(value, "\r\n"):
			return errInvalidResponse
		default:
			p.Head.AddBytesKV(name, value)
		}
	}
}

// finish gives a member its result.
func (b *batch) finish(number int, err error, now time.Time) {
	m := b.members[number]
	b.members[number] = nil
	b.left--
	if m == b.reader {
		if b.readerErr = err; err == nil {
			m.response.Ended = now
		}
		return
	}
	m.finish(err, now)
}

func (b *batch) finishAll(err error) {
	now := time.Now()
	for number, m := range b.members {
		if m != nil {
			b.finish(number, err, now)
		}
	}
}

// expire ends the members whose time is over, and reports whether there were any.
func (b *batch) expire() (any bool) {
	now := time.Now()
	for number, m := range b.members {
		if m != nil && !now.Before(m.options.deadline) {
			b.finish(number, ErrTimeout, now)
			any = true
		}
	}
	return any
}

// Disconnected implements Peer: it is called every checkInterval. It ends the members whose clients have disconnected, and those that
// another core can answer while this one is down. It reports whether the reader is one of them, or nobody is left.
func (b *batch) Disconnected() bool {
	if b.hasLane { // others do not wait for a batch that takes so long
		b.group.handOn()
		b.hasLane = false
	}
	core, now := b.group.core, time.Now()
	lost := core.Down() && b.client.cores.OtherUp(core)
	for number, m := range b.members {
		switch {
		case m == nil:
		case m.options.peer != nil && m.options.peer.Disconnected():
			b.finish(number, ErrClientGone, now)
		case lost && m.options.replayable:
			b.finish(number, errUpstreamDown, now)
		}
	}
	return b.left == 0 || !slices.Contains(b.members, b.reader)
}

// end ends the exchange once all members have their results. The connection is reused only after the complete body.
func (b *batch) end() {
	closing := b.head.ConnectionClose()
	if b.complete() {
		b.conn.release(time.Now(), closing)
	} else {
		b.conn.discard()
	}
	b.release()
}

// complete reads the end of the body, and reports whether nothing else is left of it.
func (b *batch) complete() bool {
	if b.chunks == nil || b.conn.abortErr != nil {
		return false
	}
	var more [1]byte
	if n, err := b.chunks.Read(more[:]); n > 0 || err != io.EOF {
		return false
	}
	return b.whole || readTrailers(b.conn.reader) == nil
}
