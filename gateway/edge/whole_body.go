package edge

import (
	"bufio"
	"bytes"
	"io"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/conn"
)

// smallBody is the longest body that is copied into the write buffer behind its header. Such a body is not counted while it is
// written.
const smallBody = writeBuffer

// wholeBody is a body in memory that is written without a copy, together with its header.
type wholeBody struct {
	bytes.Reader
	body    []byte
	conn    *conn.Client // nil if it is not TCP
	release func()
}

// setWholeBody sets the body of the client's response. release is called once the body has been written or was dropped.
func setWholeBody(ctx *fasthttp.RequestCtx, body []byte, release func()) {
	b := &wholeBody{body: body, conn: connOf(ctx), release: release}
	b.Reset(body)
	ctx.Response.SetBodyStream(b, len(body))
}

// WriteTo implements io.WriterTo.
func (b *wholeBody) WriteTo(to io.Writer) (int64, error) {
	buffered, ok := to.(*bufio.Writer)
	if !ok || b.conn == nil {
		return b.Reader.WriteTo(to)
	}
	n, err := b.conn.WriteBody(buffered, b.body)
	return int64(n), err
}

// CloseWithError is called by fasthttp once the body has been written or was dropped.
func (b *wholeBody) CloseWithError(error) error {
	b.release()
	return nil
}
