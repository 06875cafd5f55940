// Package transport bounds the responses that a client of HTTP gets: nothing outlives the context of its request, whatever protocol the
// other side speaks. Which addresses are dialled, and what a response means, is the caller's.
package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// ErrBodyTooLarge is what reading a response's body returns after the bytes that Bound allows.
var ErrBodyTooLarge = errors.New("the response is over the size that is read")

// Bound bounds the responses of a transport. No more than maxBody bytes of a body can be read, after decompression; 0 means no bound.
func Bound(inner http.RoundTripper, maxBody int64) http.RoundTripper {
	return &boundedTransport{inner, maxBody}
}

type boundedTransport struct {
	http.RoundTripper

	maxBody int64
}

// RoundTrip is the inner transport's, with a body that has a bound and ends with the request's context. Of a response with 101, whose
// connection would belong to the caller without any deadline (RFC 9110, section 15.2.2), only the header is left.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if response.StatusCode < http.StatusOK {
		err := response.Body.Close()
		response.Body = http.NoBody
		return response, err
	}
	response.Body = newEndingBody(request.Context(), response.Body)
	if t.maxBody > 0 {
		response.Body = &boundedBody{ReadCloser: response.Body, left: t.maxBody}
	}
	return response, nil
}

// CloseIdleConnections is for http.Client's.
func (t *boundedTransport) CloseIdleConnections() {
	if inner, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		inner.CloseIdleConnections()
	}
}

// endingBody is closed when a context ends.
type endingBody struct {
	io.ReadCloser

	ctx  context.Context
	stop func() bool
}

func newEndingBody(ctx context.Context, body io.ReadCloser) *endingBody {
	return &endingBody{body, ctx, context.AfterFunc(ctx, func() { _ = body.Close() })}
}

// Read returns the context's error once that has ended.
func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = b.ctx.Err()
	}
	return n, err
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}

type boundedBody struct {
	io.ReadCloser

	left int64
}

// Read reads one byte more than the bound, to tell a body of exactly that size from a larger one.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrBodyTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrBodyTooLarge
	}
	return n, err
}
