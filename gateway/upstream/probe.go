package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/tracing"
	"intents.internal/pkg/wire"
)

const (
	// probeInterval is how often a core that is up is probed. A core that shuts down announces it for longer than this interval
	// plus a probe's timeout.
	probeInterval = 500 * time.Millisecond
	// probeTimeout bounds a probe; a core that takes longer is ejected.
	probeTimeout = 500 * time.Millisecond
	// minRetry and maxRetry bound the pause between the probes of an ejected core, which doubles each time.
	minRetry = 50 * time.Millisecond
	maxRetry = time.Second
	// probeGap is the minimum pause between two probes of a core.
	probeGap = 10 * time.Millisecond
)

// probeLoop probes one core until ctx ends.
func (s *Set) probeLoop(ctx context.Context, c *Core) {
	retry, logged := minRetry, up
	for {
		result, err := s.client.probe(ctx, c)
		if ctx.Err() != nil {
			return
		}
		c.setProbeResult(result)
		if result == up {
			s.setReady()
		}
		if (result == up) != (logged == up) {
			s.logState(ctx, c, err)
		}
		logged = result
		pause := probeInterval
		if result == up {
			retry = minRetry
		} else {
			pause, retry = retry, min(2*retry, maxRetry)
		}
		if !wait(ctx, probeGap, nil) || !wait(ctx, jitter(pause), c.probeNow) {
			return
		}
	}
}

func (s *Set) setReady() {
	now := time.Now()
	s.readyAt.Store(&now)
}

// Unready is the time since a core last answered its probe as ready, or since the set was made. A core that cannot reach its database is
// not ready, and still answers what it has in memory.
func (s *Set) Unready() time.Duration { return time.Since(*s.readyAt.Load()) }

// errSecret is the error of a probe that the core refused with 401.
var errSecret = errors.New("the core answered its probe with 401: GATEWAY_CORE_SECRET is neither its CORE_GATEWAY_SECRET nor its CORE_GATEWAY_SECRET_PREVIOUS")

// probe asks the core whether it is ready. Any status below 500 of the core means ready: it may lack the endpoint.
func (c *Client) probe(ctx context.Context, core *Core) (state, error) {
	now := time.Now()
	options := attemptOptions{ctx: ctx, began: now, deadline: now.Add(probeTimeout)}
	response, got := c.askReady(core, options)
	if errors.Is(got.err, ErrBroken) {
		options.newConn = true // core may have closed the idle connection meanwhile
		response, got = c.askReady(core, options)
	}
	became, err := decide(got, true)
	switch {
	case became == answered && response.Status() < fasthttp.StatusInternalServerError:
		core.batches.Store(string(response.Head.Peek(wire.HeaderBatch)) == wire.BatchVersion)
		return up, nil
	case errors.Is(err, errSecretRejected):
		return draining, errSecret
	case got.by == byProxy && got.status == fasthttp.StatusUnauthorized:
		return draining, fmt.Errorf("%w; or a proxy before the core demands credentials", errSecret)
	case got.status > 0 && got.by == byProxy:
		return draining, fmt.Errorf("a proxy before the core, or a core of release 0.1.0, answered its probe with %d", got.status)
	case got.status > 0 && got.err == nil:
		return draining, fmt.Errorf("the core answered its probe with %d", got.status)
	case errors.Is(err, ErrTimeout), errors.Is(err, errNoTime):
		return down, fmt.Errorf("the core did not answer its probe within %s", probeTimeout)
	default:
		return down, err
	}
}

// askReady is an exchange on a connection that only probes use, so that it needs none of those that requests may have taken. Unlike
// Client.attempt it does not count as a request in flight, and a close that core announces triggers no other probe.
func (c *Client) askReady(core *Core, options attemptOptions) (*Response, attempt) {
	r := &Request{Client: &fasthttp.Request{}, Target: []byte(wire.PathReady), own: &own{ctx: options.ctx, isProbe: true}}
	response, x := &Response{}, exchange{core: core}
	got := c.send(&x, r, c.appendRequest(nil, r, core.URL.Host, tracing.Noop), options)
	if got.err != nil {
		return nil, got
	}
	c.read(&x, r, response, &got)
	if got.err != nil || got.by != byCore || response.Head.ConnectionClose() {
		x.conn.discard()
	} else {
		x.conn.release(time.Now(), false)
	}
	return response, got
}

func (s *Set) logState(ctx context.Context, c *Core, err error) {
	if err != nil {
		s.log.WarnContext(ctx, "core ejected", "core", c.Address, "error", err)
		return
	}
	s.log.InfoContext(ctx, "core up again", "core", c.Address)
}

// jitter spreads the probes of many gateways over time.
func jitter(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*d/5) //nolint:gosec // not a secret
}

// wait waits for d or a signal, and returns false once ctx has ended.
func wait(ctx context.Context, d time.Duration, signal <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-signal:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
