package upstream

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/wire"
)

// batch is requests that were sent together. One member after the other reads its responses.
type batch struct {
	client *Client
	group  *group
	conn   *coreConn
	// members are by number, nil once they have their result; left is how many have none.
	members []*member
	left    int
	// reader is the member that reads. It is not notified of its result, which is in readerGot.
	reader    *member
	readerGot attempt
	// hasPermit is set until the permit was passed on.
	hasPermit bool

	head fasthttp.ResponseHeader
	// body is the response's, nil before the header has arrived.
	body *frameBody
	// request is the encoded batch.
	request []byte
	// frame is the frame that is being read, of which so many bytes have arrived.
	frame   []byte
	arrived int
}

var batches = sync.Pool{New: func() any { return &batch{} }}

// release returns the batch to the pool, after the last use of its connection.
func (b *batch) release() {
	clear(b.members)
	*b = batch{members: b.members[:0], request: b.request[:0], frame: b.frame[:0]}
	batches.Put(b)
}

// doBatch sends requests as one, and returns the result of the first, the leader.
func (c *Client) doBatch(g *group, of []*member) attempt {
	b, _ := batches.Get().(*batch)
	b.client, b.group, b.hasPermit, b.left = c, g, true, len(of)
	b.members = append(b.members, of...)
	c.batched.Observe(float64(len(of)))
	leader := of[0]
	b.encode(g.core)
	options := leader.options
	options.deadline, options.replayable, options.waiter = b.deadline(), false, b
	for _, m := range of {
		options.newConn = options.newConn || m.options.newConn
	}
	x := exchange{core: g.core}
	if got := c.send(&x, b.request, options); got.err != nil {
		b.reader = leader
		b.finishAll(got)
		got = b.readerGot
		g.passPermit()
		b.release()
		return got
	}
	b.conn = x.conn
	return b.read(leader)
}

// encode encodes the POST with all requests.
func (b *batch) encode(core *cores.Core) {
	length := 0
	for _, m := range b.members {
		length += wire.FrameHeadBytes + len(*m.buffer)
	}
	b.request = append(b.request, "POST "+wire.PathBatch+" HTTP/1.1\r\n"...)
	b.request = appendField(b.request, asText, fasthttp.HeaderHost, core.URL.Host)
	b.request = append(b.request, b.client.secret...)
	b.request = append(b.request, wire.HeaderBatch+": "+wire.BatchVersion+"\r\nContent-Type: application/octet-stream\r\nContent-Length: "...)
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
func (b *batch) read(reader *member) attempt {
	b.reader, b.readerGot = reader, attempt{}
	for slices.Contains(b.members, reader) {
		err := b.next()
		switch {
		case err == nil:
		case isTimeout(err) && b.expire(): // wherever core stalls, the others have time left
		case b.conn.abortErr != nil && !slices.Contains(b.members, reader): // the reader's client has gone, those of others have not
		default:
			b.finishAll(attempt{sent: true, err: b.conn.wrapErr(err)})
		}
	}
	if b.hasPermit {
		b.group.passPermit()
		b.hasPermit = false
	}
	got := b.readerGot
	if b.left == 0 {
		b.end()
		return got
	}
	for _, m := range b.members {
		if m != nil {
			m.batch = b
			m.notified <- read // this goroutine may not use the batch any more
			break
		}
	}
	return got
}

// next waits for more of the response, and gives each response that is complete to its member. After a timeout it goes on where it was.
func (b *batch) next() error {
	b.conn.abortErr, b.conn.options.deadline = nil, b.deadline()
	if b.body != nil && b.body.ended() {
		return io.ErrUnexpectedEOF
	}
	if err := b.conn.await(1); err != nil {
		return err
	}
	if b.body == nil {
		return b.readHead()
	}
	for b.conn.reader.Buffered() > 0 && b.left > 0 {
		complete, err := b.readFrame()
		if err != nil {
			return err
		}
		if complete {
			if err := b.deliver(); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFrame reads what has arrived of a frame, and reports whether that is all of it.
func (b *batch) readFrame() (complete bool, err error) {
	for {
		if len(b.frame) == 0 {
			b.frame = slices.Grow(b.frame, wire.FrameHeadBytes)[:wire.FrameHeadBytes]
		}
		n, err := b.body.read(b.conn.reader, b.frame[b.arrived:])
		if b.arrived += n; b.arrived < len(b.frame) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return false, err
		}
		if b.arrived > wire.FrameHeadBytes {
			return true, nil
		}
		_, length, err := wire.ParseFrameHead(b.frame, len(b.members), maxBufferedBody+maxHeaderBytes)
		if err != nil || length == 0 {
			return false, errInvalidResponse
		}
		b.frame = slices.Grow(b.frame, length)[:wire.FrameHeadBytes+length]
	}
}

// deliver gives the response in the frame to its member.
func (b *batch) deliver() error {
	number, _, err := wire.ParseFrameHead(b.frame, len(b.members), len(b.frame))
	if err != nil {
		return errInvalidResponse
	}
	if m := b.members[number]; m != nil { // it had time left
		if err := m.response.parse(b.frame[wire.FrameHeadBytes:], m.request); err != nil {
			return errInvalidResponse
		}
		b.finish(number, attempt{sent: true, status: m.response.Status(), by: byCore}, time.Now())
	}
	b.frame, b.arrived = b.frame[:0], 0
	return nil
}

// readHead reads the header of the response. Unless it is core's result, it is the result of every member.
func (b *batch) readHead() error {
	if err := b.conn.readHead(&b.head); err != nil {
		return err
	}
	status, by := b.head.StatusCode(), markOf(&b.head)
	if by != byCore || status != fasthttp.StatusOK {
		b.finishAll(attempt{sent: true, status: status, by: by, batch: true})
		return nil
	}
	length := b.head.ContentLength()
	if length < chunked {
		return errInvalidResponse
	}
	b.body = newFrameBody(length)
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
func (b *batch) finish(number int, got attempt, now time.Time) {
	m := b.members[number]
	b.members[number] = nil
	b.left--
	if m != b.reader {
		m.finish(got, now)
		return
	}
	if b.readerGot = got; got.err == nil && got.by == byCore && !got.batch {
		m.response.Ended = now
	}
}

func (b *batch) finishAll(got attempt) {
	now := time.Now()
	for number, m := range b.members {
		if m != nil {
			b.finish(number, got, now)
		}
	}
}

// expire ends the members whose time is over, and reports whether there were any.
func (b *batch) expire() (any bool) {
	now := time.Now()
	for number, m := range b.members {
		if m != nil && !now.Before(m.options.deadline) {
			b.finish(number, attempt{sent: true, err: ErrTimeout}, now)
			any = true
		}
	}
	return any
}

// tick implements waiter. It passes the permit on, because others do not wait for a batch that takes longer than checkInterval. It ends the
// members whose clients have disconnected, and those that another core can answer while this one is down, and aborts the wait if the reader is
// one of them, or nobody is left.
func (b *batch) tick() error {
	if b.hasPermit {
		b.group.passPermit()
		b.hasPermit = false
	}
	core, now := b.group.core, time.Now()
	lost := core.Down() && core.OtherUp()
	for number, m := range b.members {
		switch {
		case m == nil:
		case m.request.tick() != nil:
			b.finish(number, attempt{sent: true, err: ErrClientGone}, now)
		case lost && m.options.replayable:
			b.finish(number, attempt{sent: true, err: errUpstreamDown}, now)
		}
	}
	if b.left == 0 || !slices.Contains(b.members, b.reader) {
		return ErrClientGone
	}
	return nil
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

// complete reads the end of the body, and reports whether nothing else is left of it. It waits for it no longer than checkInterval, because the
// reader has its response.
func (b *batch) complete() bool {
	if b.body == nil || b.conn.abortErr != nil || b.arrived > 0 {
		return false
	}
	now := time.Now()
	b.conn.options.waiter, b.conn.options.began, b.conn.options.deadline = nil, now, now.Add(checkInterval)
	for !b.body.ended() {
		var more [1]byte
		if n, err := b.body.read(b.conn.reader, more[:]); n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return false
		}
		if !b.body.ended() && b.conn.await(1) != nil {
			return false
		}
	}
	return true
}
