package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"
)

// ErrTooLong means that core's response is over the bound of the call.
var ErrTooLong = fmt.Errorf("%w: it is over its bound", errInvalidResponse)

// Call is a request of the gateway's own. Core may get it more than once without harm, and any core can answer it.
type Call struct {
	Method string
	// Target is the path and query. RetryTarget replaces it from the second attempt on; empty for the same.
	Target, RetryTarget string
	// Body is JSON, nil for none.
	Body []byte
	// ETag makes the call conditional; empty for not.
	ETag string
	// Coding is the content coding that the response may have in addition to identity; empty for none.
	Coding string
	// Wait is how long core may hold the response to Target back.
	Wait time.Duration
	// MaxBody bounds the response's body; 0 for 1.5 MiB.
	MaxBody int
}

// Call sends a call as Do sends a request, until one core has answered or no time or core is left. Its deadline is that of ctx, else
// Options.Timeout; while another core is up, an attempt takes at most half of the time that is left. Its connections are not those
// of the clients' requests, and it waits for one until its deadline.
//
// It returns a status of 500 or above only if no other core is left. Its errors are those of Do, ErrTooLong and those of ctx.
func (c *Client) Call(ctx context.Context, call Call) (*Response, error) {
	var message fasthttp.Request
	message.Header.SetMethod(call.Method)
	message.Header.Set(fasthttp.HeaderAcceptEncoding, cmp.Or(call.Coding, "identity"))
	if call.ETag != "" {
		message.Header.Set(fasthttp.HeaderIfNoneMatch, call.ETag)
	}
	if call.Body != nil {
		message.Header.SetContentType("application/json")
		message.SetBodyRaw(call.Body)
	}
	response := &Response{}
	r := &Request{Client: &message, Target: []byte(call.Target), Began: time.Now()}
	switch err := c.do(r, c.callPolicy(ctx, r, call), response); {
	case err == nil:
		return response, nil
	case errors.Is(err, ErrTimeout):
		return nil, context.DeadlineExceeded // the text of ErrTimeout names the setting for clients' requests
	default:
		return nil, err
	}
}

// callPolicy is that of a request of the gateway's own.
func (c *Client) callPolicy(ctx context.Context, r *Request, call Call) policy {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		deadline = r.Began.Add(c.timeout)
	}
	return policy{
		attempt: attemptOptions{
			ctx: ctx, began: r.Began, deadline: deadline, replayable: true, pool: ownPool, maxBody: cmp.Or(call.MaxBody, maxBufferedBody),
		},
		retry: retry{everyCore: true, wait: call.Wait, target: call.RetryTarget},
	}
}
