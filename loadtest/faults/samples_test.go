package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"intents.internal/pkg/wire"
)

// kind is what a request is made for.
type kind int

const (
	// honest requests are of keys that stay below their limit, greedy ones of a key that exceeds it. Both get /v2/chains.
	honest kind = iota
	greedy
	// baseline requests need neither Redis nor core: their times show how busy the machine is.
	baseline
	// reads list the account's newest intent; writes create an intent, keyedWrites with an Idempotency-Key; batches create batchSize of them.
	reads
	writes
	keyedWrites
	batches
)

// repeatable reports whether a request may be sent again until it is acknowledged.
func (k kind) repeatable() bool { return k == keyedWrites || k == batches }

func (k kind) String() string {
	return [...]string{"honest GET", "greedy GET", "GET of the health", "GET", "POST", "POST with key", "POST of a batch"}[k]
}

// sample is one request and its response.
type sample struct {
	kind    kind
	gateway int
	key     string
	// reference is that of the intent to create.
	reference string
	// began is when the request was due, from which took counts.
	began  time.Time
	took   time.Duration
	status int // 0 without a response
	// fault says what is wrong with the response, or why there is none.
	fault string
	// remaining is what the response says is left of the key's limit, such as r=49, and retryAfter its Retry-After.
	remaining, retryAfter string
}

// send makes a request with the sample's key, with an Idempotency-Key if it is not empty, and notes the response. The client has a timeout.
func (s *sample) send(ctx context.Context, client *http.Client, method, url, body, idempotencyKey string) (answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Api-Key", s.key)
	request.Header.Set("Content-Type", "application/json")
	request.GetBody = nil // net/http repeats no request whose body it cannot read again
	if idempotencyKey != "" {
		request.Header["idempotency-key"] = []string{idempotencyKey} // in a spelling that net/http does not know, or it would repeat the request
	}
	response, err := client.Do(request)
	if err != nil {
		s.fault = err.Error()
		return nil, err
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		s.fault = err.Error()
		return nil, err
	}
	s.status, s.fault, s.retryAfter = response.StatusCode, faultOf(response, answer), response.Header.Get("Retry-After")
	s.remaining, _, _ = strings.Cut(strings.TrimPrefix(response.Header.Get("RateLimit"), `"default";`), ";")
	return answer, nil
}

// faultOf says what no response may be, whatever fails behind the gateway; empty if nothing is wrong.
func faultOf(response *http.Response, body []byte) string {
	if response.StatusCode < 400 {
		return ""
	}
	var answer struct{ Code, Message string }
	if err := json.Unmarshal(body, &answer); err != nil || answer.Code == "" || answer.Message == "" {
		return fmt.Sprintf("%d %q is no {code, message}", response.StatusCode, body)
	}
	waits := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
	if waits && answer.Code != string(wire.OutcomeUnknown) && response.Header.Get("Retry-After") == "" {
		return fmt.Sprintf("%d without Retry-After", response.StatusCode)
	}
	for _, leaked := range []string{"NOSCRIPT", "READONLY", "redis", "dial tcp", "LOADING"} {
		if strings.Contains(string(body), leaked) {
			return fmt.Sprintf("%d reveals what is behind the gateway: %s", response.StatusCode, body)
		}
	}
	return ""
}

func (s sample) failed() bool { return s.status == 0 || s.status >= 500 }

func (s sample) ended() time.Time { return s.began.Add(s.took) }

type samples []sample

func (s samples) filter(keep func(sample) bool) (some samples) {
	for _, one := range s {
		if keep(one) {
			some = append(some, one)
		}
	}
	return some
}

func (s samples) of(k kind) samples { return s.filter(func(one sample) bool { return one.kind == k }) }

func (s samples) failed() samples { return s.filter(sample.failed) }

// admitted are those that the limit let through.
func (s samples) admitted() samples {
	return s.filter(func(one sample) bool { return one.status > 0 && one.status < 400 })
}

// between are those that began from one time until another.
func (s samples) between(from, until time.Time) samples {
	return s.filter(func(one sample) bool { return !one.began.Before(from) && one.began.Before(until) })
}

// since are those that were in flight at that time or began later.
func (s samples) since(at time.Time) samples {
	return s.filter(func(one sample) bool { return one.ended().After(at) })
}

// quantile is the time within which this share of them was answered.
func (s samples) quantile(share float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	took := make([]time.Duration, len(s))
	for n, one := range s {
		took[n] = one.took
	}
	slices.Sort(took)
	return took[int(math.Ceil(share*float64(len(took))))-1]
}

func (s samples) slowest() time.Duration { return s.quantile(1) }

// String counts them by kind and status.
func (s samples) String() string {
	counts := map[string]int{}
	for _, one := range s {
		counts[fmt.Sprintf("%s %d", one.kind, one.status)]++
	}
	return fmt.Sprint(counts)
}

// first describes some of them, with times that count from base.
func (s samples) first(count int, base time.Time) (text string) {
	for _, one := range s[:min(len(s), count)] {
		text += fmt.Sprintf("\n\t%s at gateway %d, %s after the fault, for %s: %d %s", one.kind, one.gateway, one.began.Sub(base), one.took, one.status, one.fault)
	}
	return text
}

// mustBeSound fails the test for responses that no client may get.
func (s samples) mustBeSound(tb testing.TB) {
	tb.Helper()
	wrong := s.filter(func(one sample) bool { return one.status > 0 && one.fault != "" })
	if len(wrong) > 0 {
		tb.Errorf("%d responses that no client may get:%s", len(wrong), wrong.first(5, wrong[0].began))
	}
}

// mustAllPass fails the test for requests that failed, and for honest ones that were refused.
func (s samples) mustAllPass(tb testing.TB) {
	tb.Helper()
	if failed := s.failed(); len(failed) > 0 || len(s) == 0 {
		tb.Errorf("%d of %d requests failed: %s", len(failed), len(s), failed)
	}
	if refused := s.of(honest).filter(func(one sample) bool { return one.status != http.StatusOK }); len(refused) > 0 {
		tb.Errorf("honest keys, which stay below their limits, were answered %s", refused)
	}
}

// mustBeUnavailable fails the test for statuses other than 503.
func (s samples) mustBeUnavailable(tb testing.TB, base time.Time) {
	tb.Helper()
	others := s.filter(func(one sample) bool { return one.status != http.StatusServiceUnavailable })
	if len(others) > 0 {
		tb.Errorf("%d of %d failed requests got another status than 503: %s%s", len(others), len(s), others, others.first(5, base))
	}
}

// The limit of every key: a bucket of burst requests, and the time in which one comes back.
const (
	burst = 50
	token = time.Minute / burst
)

// earned is how many requests came back to a bucket from the first of them to the last.
func (s samples) earned() int {
	if len(s) == 0 {
		return 0
	}
	first, last := s[0].began, s[0].ended()
	for _, one := range s {
		if one.began.Before(first) {
			first = one.began
		}
		if one.ended().After(last) {
			last = one.ended()
		}
	}
	return int(last.Sub(first) / token)
}

// overAdmission is how many requests of the one greedy key were let through beyond its limit.
func (s samples) overAdmission() int {
	of := s.of(greedy)
	return len(of.admitted()) - burst - of.earned()
}

// mustLimit fails the test if the greedy key had more let through than its limit, this many bursts, and what gateways without Redis
// add on their own: they continue from its last answer, so that is no more than what came back meanwhile.
func (s samples) mustLimit(tb testing.TB, gateways, bursts int) {
	tb.Helper()
	over, most := s.overAdmission(), bursts*burst+gateways*(s.earned()+1)
	tb.Logf("%d requests of one key beyond the limit", over)
	if over > most {
		tb.Errorf("%d requests of one key beyond the limit, more than %d", over, most)
	}
}
