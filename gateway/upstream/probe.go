package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

// errSecret is the error of a probe that the core refused with 401.
var errSecret = errors.New("the core answered its probe with 401: GATEWAY_CORE_SECRET is neither its CORE_GATEWAY_SECRET nor its CORE_GATEWAY_SECRET_PREVIOUS")

// probeTimeout bounds a probe; a core that takes longer is ejected.
const probeTimeout = 500 * time.Millisecond

// Probe implements cores.Transport. Any status below 500 of the core means ready: it may lack the endpoint.
func (t *transport) Probe(ctx context.Context) (cores.State, error) {
	now := time.Now()
	options := attemptOptions{ctx: ctx, began: now, deadline: now.Add(probeTimeout), pool: probePool, maxBody: maxBufferedBody}
	response, got := t.askReady(options)
	if errors.Is(got.err, ErrBroken) {
		options.newConn = true // core may have closed the idle connection meanwhile
		response, got = t.askReady(options)
	}
	became, err := decide(got, true)
	switch {
	case became == answered && response.Status() < fasthttp.StatusInternalServerError:
		t.core.SetBatches(string(response.Head.Peek(wire.HeaderBatch)) == wire.BatchVersion)
		return cores.Up, nil
	case errors.Is(err, errSecretRejected):
		return cores.Draining, errSecret
	case got.by == byProxy && got.status == fasthttp.StatusUnauthorized:
		return cores.Draining, fmt.Errorf("%w; or a proxy before the core demands credentials", errSecret)
	case got.status > 0 && got.by == byProxy:
		return cores.Draining, fmt.Errorf("a proxy before the core, or a core of release 0.1.0, answered its probe with %d", got.status)
	case got.status > 0 && got.err == nil:
		return cores.Draining, fmt.Errorf("the core answered its probe with %d", got.status)
	case errors.Is(err, ErrTimeout), errors.Is(err, errNoTime):
		return cores.Down, fmt.Errorf("the core did not answer its probe within %s", probeTimeout)
	default:
		return cores.Down, err
	}
}

// askReady is an exchange on a connection that only probes use, so that it needs none of those that requests may have taken. Unlike
// Client.attempt it does not count as a request in flight, and a close that core announces triggers no other probe.
func (t *transport) askReady(options attemptOptions) (*Response, attempt) {
	r := &Request{Client: &fasthttp.Request{}, Target: []byte(wire.PathReady)}
	response, x := &Response{}, exchange{core: t.core}
	got := t.client.send(&x, t.client.appendRequest(nil, r, t.core.URL.Host, tracing.Noop), options)
	if got.err != nil {
		return nil, got
	}
	t.client.read(&x, r, options.maxBody, response, &got)
	if got.err != nil || got.by != byCore || response.Head.ConnectionClose() {
		x.conn.discard()
	} else {
		x.conn.release(time.Now(), false)
	}
	return response, got
}
