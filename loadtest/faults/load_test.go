package faults_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// The limit of every key: a bucket of so many requests, and how long one takes to come back.
const (
	burst = 50
	token = time.Minute / burst
)

// stream is requests at an even rate, which go round a list of keys, and round all gateways for each.
type stream struct {
	keys []string
	rate int // a second
	// send makes a request of the stream; nil: GET /v2/chains.
	send func(gateway, key string) (*http.Request, error)
}

// sample is one request and what became of it.
type sample struct {
	stream, gateway int
	key             string
	due             time.Time
	took            time.Duration // counted from when it was due
	status          int           // 0 without an answer
	// fault is what is wrong with the answer, whatever its status may be.
	fault string
	left  string // what the answer says is left of the limit, such as r=49
	// retryAfter is the header's value in seconds, empty without one.
	retryAfter string
}

// load sends requests when they are due, however long others take, as many clients would.
type load struct {
	t       *testing.T
	fleet   []*gateway
	streams []stream
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
		t: t, fleet: fleet, streams: streams, began: time.Now(), stopped: make(chan struct{}),
		client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}},
	}
	for n := range streams {
		l.pacers.Go(func() { l.pace(n) })
	}
	t.Cleanup(func() { l.stop() })
	return l
}

// stop ends the load, waits for the last answer and returns all.
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

func (l *load) pace(stream int) {
	s := l.streams[stream]
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
		one := sample{stream: stream, gateway: n % len(l.fleet), key: s.keys[n/len(l.fleet)%len(s.keys)], due: due}
		l.sent.Go(func() { l.send(one) })
	}
}

func (l *load) send(one sample) {
	l.ask(&one)
	one.took = time.Since(one.due)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, one)
}

// ask makes the request, and puts down what was answered.
func (l *load) ask(one *sample) {
	send := l.streams[one.stream].send
	if send == nil {
		send = getChains
	}
	request, err := send(l.fleet[one.gateway].url, one.key)
	if err != nil {
		one.fault = err.Error()
		return
	}
	response, err := l.client.Do(request)
	if err != nil {
		one.fault = err.Error()
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		one.fault = err.Error()
		return
	}
	one.status, one.fault = response.StatusCode, faultOf(response, body)
	one.left, _, _ = strings.Cut(strings.TrimPrefix(response.Header.Get("RateLimit"), `"default";`), ";")
	one.retryAfter = response.Header.Get("Retry-After")
}

func getChains(gateway, key string) (*http.Request, error) {
	request, err := http.NewRequest(http.MethodGet, gateway+"/v2/chains", nil) //nolint:noctx // the client has a timeout
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Api-Key", key)
	return request, nil
}

// controlStream asks the gateways for what needs neither Redis nor core: how long that takes is the machine's doing alone.
var controlStream = stream{keys: []string{""}, rate: 20, send: func(gateway, _ string) (*http.Request, error) {
	return http.NewRequest(http.MethodGet, gateway+"/v2/health", nil)
}}

// faultOf is what no answer may be, whatever fails behind the gateway.
func faultOf(response *http.Response, body []byte) string {
	if response.StatusCode < 400 {
		return ""
	}
	var told struct{ Code, Message string }
	if err := json.Unmarshal(body, &told); err != nil || told.Code == "" || told.Message == "" {
		return fmt.Sprintf("%d %q is no {code, message}", response.StatusCode, body)
	}
	waits := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
	if waits && told.Code != string(wire.OutcomeUnknown) && response.Header.Get("Retry-After") == "" {
		return fmt.Sprintf("%d without Retry-After", response.StatusCode)
	}
	for _, leaked := range []string{"NOSCRIPT", "READONLY", "redis", "dial tcp", "LOADING"} {
		if strings.Contains(string(body), leaked) {
			return fmt.Sprintf("%d tells of what is behind: %s", response.StatusCode, body)
		}
	}
	return ""
}

// warm makes requests with each key at each gateway until one passes, so that all keys are known there.
func warm(t *testing.T, fleet []*gateway, keys []string) {
	t.Helper()
	l := &load{t: t, fleet: fleet, streams: []stream{{keys: keys}}, client: &http.Client{Timeout: 15 * time.Second}}
	for n := range fleet {
		for _, key := range keys {
			asynctest.Eventually(t, "a key's first request passes", func() bool {
				one := sample{gateway: n, key: key}
				l.ask(&one)
				return one.status == http.StatusOK
			})
		}
	}
	l.client.CloseIdleConnections()
}
