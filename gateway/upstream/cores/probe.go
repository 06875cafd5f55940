package cores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

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

func (s *Set) newProbes(c *Core) *http.Client {
	return &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			DialContext:         c.DialContext,
			TLSClientConfig:     s.TLS(c),
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     20 * time.Second, // below core's idle timeout
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// probeLoop probes one core until ctx ends.
func (s *Set) probeLoop(ctx context.Context, c *Core) {
	retry, logged := minRetry, up
	for {
		result, err := s.probe(ctx, c)
		if ctx.Err() != nil {
			return
		}
		c.setProbeResult(result)
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

// errSecret is the error of a probe that the core rejected with 401.
var errSecret = errors.New("the core answered its probe with 401: GATEWAY_CORE_SECRET is neither its CORE_GATEWAY_SECRET nor its CORE_GATEWAY_SECRET_PREVIOUS")

// probe asks the core whether it is ready. Any status below 500 but 401 means ready: a core may lack the endpoint.
func (s *Set) probe(ctx context.Context, c *Core) (state, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL.Scheme+"://"+c.URL.Host+wire.PathReady, nil)
	if err != nil {
		return down, err
	}
	request.Header.Set(wire.HeaderGatewaySecret, s.secret.Reveal())
	response, err := c.probes.Do(request)
	if err != nil {
		return down, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, 4<<10)); err != nil {
		return down, err
	}
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return draining, errSecret
	case response.StatusCode >= http.StatusInternalServerError:
		return draining, fmt.Errorf("the core answered its probe with %d", response.StatusCode)
	}
	c.batches.Store(response.Header.Get(wire.HeaderBatch) == wire.BatchVersion)
	return up, nil
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
