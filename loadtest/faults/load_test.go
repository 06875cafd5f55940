package faults_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
)

// stream is requests of a kind at an even rate, which go round its keys, and round all gateways for each key.
type stream struct {
	kind kind
	keys []string
	rate int // a second
}

var baselineStream = stream{kind: baseline, keys: []string{""}, rate: 20}

// load sends requests when they are due, however long others take (an open loop).
type load struct {
	t       *testing.T
	fleet   []*gateway
	client  *http.Client
	began   time.Time
	stopped chan struct{}
	pacers  sync.WaitGroup
	sent    sync.WaitGroup

	mu  sync.Mutex
	all samples
}

// startLoad runs until it is stopped, at most until the test ends.
func startLoad(t *testing.T, fleet []*gateway, streams ...stream) *load {
	t.Helper()
	l := &load{
		t: t, fleet: fleet, began: time.Now(), stopped: make(chan struct{}),
		client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}},
	}
	for _, s := range streams {
		l.pacers.Go(func() { l.pace(s) })
	}
	t.Cleanup(func() { l.stop() })
	return l
}

// stop ends the load, waits for the last response and returns all samples.
func (l *load) stop() samples {
	select {
	case <-l.stopped:
	default:
		close(l.stopped)
	}
	l.pacers.Wait()
	l.sent.Wait()
	l.client.CloseIdleConnections()
	return l.soFar()
}

func (l *load) soFar() samples {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

func (l *load) pace(s stream) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		due := l.began.Add(time.Duration(n) * time.Second / time.Duration(s.rate))
		timer.Reset(time.Until(due))
		select {
		case <-l.stopped:
			return
		case <-timer.C:
		}
		one := sample{kind: s.kind, gateway: n % len(l.fleet), key: s.keys[n/len(l.fleet)%len(s.keys)], began: due}
		l.sent.Go(func() {
			l.fleet[one.gateway].get(&one, l.client)
			one.took = time.Since(one.began)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.all = append(l.all, one)
		})
	}
}

// get requests what needs no more than the limit of a key, or, for the baseline, nothing but the gateway.
func (g *gateway) get(s *sample, client *http.Client) {
	path := "/v2/chains"
	if s.kind == baseline {
		path = "/v2/health"
	}
	_, _ = s.send(context.Background(), client, http.MethodGet, g.URL+path, "", "")
}

// warm makes requests with each key at each gateway until one passes, so that all keys are known there.
func warm(t *testing.T, fleet []*gateway, keys []string) {
	t.Helper()
	for _, g := range fleet {
		for _, key := range keys {
			asynctest.Eventually(t, "a key's first request passes", func() bool {
				one := sample{key: key}
				g.get(&one, direct)
				return one.status == http.StatusOK
			})
		}
	}
}

// startBeside sends the fleet, beside a workload, requests of a key beyond its limit and the baseline.
func startBeside(t *testing.T, fleet []*gateway) *load {
	t.Helper()
	return startLoad(t, fleet, stream{kind: greedy, keys: newKeys(t, 1), rate: 20}, baselineStream)
}

// stopBeside fails the test if the key went over its limit, and returns the judge of latencies.
func stopBeside(t *testing.T, l *load) judge {
	t.Helper()
	all := l.stop()
	if over := all.overAdmission(); over > 0 {
		t.Errorf("one key had %d requests too many", over)
	}
	return newJudge(t, all.of(baseline))
}
