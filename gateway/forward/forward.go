package forward

import (
	"errors"
	"io"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/keys"
)

// Request is what the gateway says to core on behalf of a client. Everything in it is used only until Do returns.
type Request struct {
	Ctx *fasthttp.RequestCtx
	// Target is the path and query, sent as they are.
	Target []byte
	// ID is the request id.
	ID string
	// ClientIP is the client's address in text, and Proto the scheme it used.
	ClientIP []byte
	Proto    string
	// Verdict is the identity core is told, nil on routes without a key.
	Verdict *keys.Verdict
	// Session lets a browser's session and what protects it cross in both directions.
	Session bool
	// Stream passes the answer on as it comes, in bounded memory.
	Stream bool
}

// Do sends the request to core and builds the client's answer from core's. Its errors are ErrUnreachable, ErrBusy,
// ErrTimeout and ErrBroken; the client's answer is untouched then.
//
// Where the answer is streamed Do returns before the body has come. If the rest then fails the client's connection is
// closed before the answer's end, so that it cannot be taken for the whole.
func (c *Client) Do(r *Request) error {
	up, answer := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(up)
	c.fill(up, r)

	client := c.buffered
	if r.Stream {
		client = c.streamed
	} else {
		up.SetTimeout(c.timeout)
	}
	if err := client.Do(up, answer); err != nil {
		fasthttp.ReleaseResponse(answer)
		return classify(err)
	}

	to := &r.Ctx.Response
	body := answer.BodyStream()
	if body != nil && answer.Header.ContentLength() < -1 {
		// Without a length or chunks nobody could tell the whole from a part.
		_ = answer.CloseBodyStream()
		fasthttp.ReleaseResponse(answer)
		return ErrBroken
	}
	if n := answer.Header.ContentLength(); body != nil && n >= 0 && n <= maxWholeAnswer {
		whole, err := readWhole(answer, body, n)
		if err != nil {
			fasthttp.ReleaseResponse(answer)
			return classify(err)
		}
		answer.SetBodyRaw(whole)
		body = nil
	}
	copyAnswerHeaders(&to.Header, &answer.Header, r.Session)
	if body != nil {
		to.SetBodyStream(&answerBody{answer: answer, body: body}, answer.Header.ContentLength())
		return nil
	}
	if r.Ctx.IsHead() {
		to.SkipBody = true
		to.Header.SetContentLength(answer.Header.ContentLength())
	}
	to.SetBody(answer.Body())
	fasthttp.ReleaseResponse(answer)
	return nil
}

// readWhole reads a streamed answer of n bytes and frees its connection.
func readWhole(answer *fasthttp.Response, body io.Reader, n int) ([]byte, error) {
	whole := make([]byte, n)
	_, err := io.ReadFull(body, whole)
	return whole, errors.Join(err, answer.CloseBodyStream())
}

// answerBody is the rest of a streamed answer; it holds the answer until the body has been read or given up.
type answerBody struct {
	answer *fasthttp.Response
	body   io.Reader
}

func (b *answerBody) Read(p []byte) (int, error) { return b.body.Read(p) }

// Close ends the exchange with core: the connection is used again if the body was read to its end, else closed.
func (b *answerBody) Close() error {
	err := b.answer.CloseBodyStream()
	fasthttp.ReleaseResponse(b.answer)
	return err
}
