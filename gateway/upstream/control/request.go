package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"intents.internal/gateway/upstream/cores"
	"intents.internal/pkg/wire"
)

// request is an idempotent request to core.
type request struct {
	method string
	// target is the path and query. retryTarget replaces it after a core has not responded; empty for the same.
	target, retryTarget string
	body                []byte
	etag                string
	// coding is the content coding that the response may have in addition to identity; empty for none.
	coding string
	// serverWait is how long core may wait before it responds.
	serverWait time.Duration
	// maxBytes bounds the response; 0 for maxResponseBytes.
	maxBytes int64
}

// response is the status and header of a response. As an error it means an unexpected status.
type response struct {
	status int
	code   wire.Code
	header http.Header
}

func (r response) Error() string { return fmt.Sprintf("core answered %d %s", r.status, r.code) }

// call tries one core after the other until one responds or no time or core is left. A core that rejects the shared secret has
// not responded. It decodes the body of a 200 into out.
func (c *Client) call(ctx context.Context, r request, out any) (response, error) {
	var tried cores.Tried
	var last response
	lastErr := errors.New("no core is left to try")
	for core := c.cores.Pick(tried); core != nil; core = c.cores.Pick(tried) {
		attempt, cancel := c.attemptContext(ctx, core, r.serverWait)
		text, resp, err := c.do(attempt, core, r)
		cancel()
		if err == nil && resp.status >= http.StatusBadRequest {
			resp.code = wire.CodeOf(text)
		}
		refused := resp.status == http.StatusUnauthorized && resp.code == wire.NotAGateway
		if err == nil && resp.status < http.StatusInternalServerError && !refused {
			err := c.decode(text, resp, out)
			return resp, err
		}
		last, lastErr = resp, err
		switch {
		case ctx.Err() != nil:
			return last, lastErr
		case errors.Is(err, errTooLong):
			return last, lastErr
		case errors.Is(err, errCoreRemoved):
		case isDialError(err):
			core.MarkUnreachable(err)
		case err != nil, refused:
			core.MarkFailed()
		}
		tried.MarkUnreachable(core)
		if r.retryTarget != "" {
			r.target, r.serverWait = r.retryTarget, 0
		}
	}
	return last, lastErr
}

// attemptContext bounds one attempt, to half of the remaining time if another core is up.
func (c *Client) attemptContext(ctx context.Context, core *cores.Core, serverWait time.Duration) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded || !c.cores.OtherUp(core) {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, serverWait+(time.Until(deadline)-serverWait)/2)
}

// do sends the request to one core and reads the response.
func (c *Client) do(ctx context.Context, core *cores.Core, r request) (text []byte, resp response, err error) {
	httpRequest, err := http.NewRequestWithContext(ctx, r.method, core.URL.Scheme+"://"+core.URL.Host+r.target, bytes.NewReader(r.body))
	if err != nil {
		return nil, response{}, err
	}
	httpRequest.Header.Set(wire.HeaderGatewaySecret, c.secret.Reveal())
	if r.body != nil {
		httpRequest.Header.Set("Content-Type", "application/json")
	}
	httpRequest.Header.Set("Accept-Encoding", cmp.Or(r.coding, "identity"))
	if r.etag != "" {
		httpRequest.Header.Set("If-None-Match", r.etag)
	}
	core.Begin()
	defer core.End()
	client, ok := c.http.Get(core)
	if !ok {
		return nil, response{}, errCoreRemoved
	}
	httpResponse, err := client.Do(httpRequest)
	if err != nil {
		return nil, response{}, err
	}
	defer httpResponse.Body.Close()
	maxBytes := cmp.Or(r.maxBytes, maxResponseBytes)
	text, err = io.ReadAll(io.LimitReader(httpResponse.Body, maxBytes+1))
	if err != nil {
		return nil, response{}, err
	}
	if int64(len(text)) > maxBytes {
		return nil, response{}, errTooLong
	}
	if httpResponse.Close {
		core.ProbeNow()
	}
	return text, response{status: httpResponse.StatusCode, header: httpResponse.Header}, nil
}

// decode decodes the body of a 200: unchanged if out is a *[]byte, else as JSON. It records that core has responded.
func (c *Client) decode(text []byte, resp response, out any) error {
	now := time.Now()
	c.lastResponse.Store(&now)
	if resp.status == http.StatusOK {
		if raw, ok := out.(*[]byte); ok {
			*raw = text
			return nil
		}
		return json.Unmarshal(text, out)
	}
	return nil
}

func isDialError(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}
