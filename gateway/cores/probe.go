package cores

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"intents.internal/pkg/wire"
)

const (
	// probeEvery is how often a core that is up is probed. A core that is about to end says so for longer than that, and
	// a probe's timeout, before it does.
	probeEvery = 500 * time.Millisecond
	// probeTimeout is how long a core may take to answer a probe; one that takes longer is set aside.
	probeTimeout = 500 * time.Millisecond
	// firstRetry and slowestRetry are the pauses between the probes of a core that is set aside, doubled each time.
	firstRetry   = 50 * time.Millisecond
	slowestRetry = time.Second
	// probeGap is the least pause between two probes, whatever the requests say.
	probeGap = 10 * time.Millisecond
)

func (s *Set) newProbes(c *Core) *http.Client {
	return &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			DialContext:         c.DialContext,
			TLSClientConfig:     s.TLS(c),
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     20 * time.Second, // below core's own
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// watch probes one core until ctx ends.
func (s *Set) watch(ctx context.Context, c *Core) {
	retry, told := firstRetry, up
	for {
		now, err := s.probe(ctx, c)
		if ctx.Err() != nil {
			return
		}
		c.conclude(now)
		if (now == up) != (told == up) {
			s.tell(ctx, c, err)
		}
		told = now
		wait := probeEvery
		if now == up {
			retry = firstRetry
		} else {
			wait, retry = retry, min(2*retry, slowestRetry)
		}
		if !pause(ctx, probeGap, nil) || !pause(ctx, jitter(wait), c.suspected) {
			return
		}
	}
}

// probe asks the core whether it can work. A core that knows no such question but answers is up.
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
	if response.StatusCode >= http.StatusInternalServerError {
		return refusing, fmt.Errorf("the core answered its probe with %d", response.StatusCode)
	}
	return up, nil
}

func (s *Set) tell(ctx context.Context, c *Core, err error) {
	if err != nil {
		s.log.WarnContext(ctx, "core set aside", "core", c.Address, "error", err)
		return
	}
	s.log.InfoContext(ctx, "core answers again", "core", c.Address)
}

// jitter spreads the probes of many gateways.
func jitter(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*d/5) //nolint:gosec // nobody gains by guessing it
}

// pause waits for d, or until early says something, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
