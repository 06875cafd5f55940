package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/polls"
)

const (
	// minRefetchInterval is the minimum time between two requests of one long poll to core. It doubles after every empty
	// response, up to maxRefetchInterval: the poll's filter may exclude all new events of its account.
	minRefetchInterval, maxRefetchInterval = 50 * time.Millisecond, 200 * time.Millisecond
	// disconnectCheckInterval is how often a parked request checks whether its client has disconnected.
	disconnectCheckInterval = time.Second
	// maxPollWait bounds the wait that core returns. The public interface has the same bound.
	maxPollWait = 25 * time.Second
)

// isLongPoll reports whether a request for events has a wait parameter. Core validates its value.
func isLongPoll(target []byte) bool {
	_, query, _ := bytes.Cut(target, []byte("?"))
	for parameter := range bytes.SplitSeq(query, []byte("&")) {
		if wait, found := bytes.CutPrefix(parameter, []byte("wait=")); found && len(bytes.Trim(wait, "0")) > 0 {
			return true
		}
	}
	return false
}

// longPoll forwards a request for events that may wait for one. Core responds at once. If the response is empty and may wait,
// longPoll keeps it and parks the request; the client gets it when the wait is over. A parked request holds no connection to core
// and takes no further token of its rate limit.
//
// New events of the account send the request to core again. The poll subscribes before its first request to core, so that no
// event is missed. The key is verified again because it may have been revoked meanwhile.
func (e *Edge) longPoll(x *exchange, target []byte) *reply {
	poll, err := e.polls.Acquire(x.verdict.KeyID(), x.verdict.AccountID(), x.verdict.Environment())
	if err != nil {
		return tooManyPolls(err)
	}
	defer poll.Release()
	interval := minRefetchInterval
	refusal := e.forwardList(x, target)
	for refusal == nil {
		rest, waits := x.holdResponse(target)
		if !waits {
			return nil
		}
		switch e.park(x, poll, interval) {
		case pollExpired:
			return nil
		case clientDisconnected:
			x.dropResponse()
			return clientGone
		case newEvents:
			refusal = e.refetch(x, rest)
		}
		target, interval = rest, min(2*interval, maxRefetchInterval)
	}
	return refusal
}

// refetch drops the kept response and requests the events after it from core. It releases the poll's slot in Questions.
func (e *Edge) refetch(x *exchange, target []byte) *reply {
	defer func() { <-e.polls.Questions() }()
	x.dropResponse()
	if refusal := e.verifyKey(x); refusal != nil {
		return refusal
	}
	return e.forwardList(x, target)
}

// parkResult is why a request is no longer parked.
type parkResult int

const (
	// pollExpired sends the kept response: the wait is over, or the gateway drains.
	pollExpired parkResult = iota
	// newEvents sends the request to core again; the poll holds a slot in Questions.
	newEvents
	clientDisconnected
)

// park waits for new events of the poll's account: at least until the interval since the last request to core has passed, and at
// most until the wait that core allowed has passed since the request arrived.
func (e *Edge) park(x *exchange, poll *polls.Poll, interval time.Duration) parkResult {
	began, client := x.now, connOf(x.ctx)
	defer func() { x.parked += x.now.Sub(began) }()
	until, nextFetch, nextCheck := x.began.Add(x.response.PollWait), x.request.Began.Add(interval), began.Add(disconnectCheckInterval)
	wake, slot := poll.News(), chan<- struct{}(nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next := earlier(until, nextCheck)
		if wake == nil && slot == nil {
			next = earlier(next, nextFetch)
		}
		timer.Reset(next.Sub(x.now))
		select {
		case <-e.polls.Draining():
			x.now = time.Now()
			return pollExpired
		case slot <- struct{}{}:
			x.now = time.Now()
			return newEvents
		case <-wake:
			wake = nil
		case <-timer.C:
		}
		x.now = time.Now()
		if !x.now.Before(until) {
			return pollExpired
		}
		if !x.now.Before(nextCheck) {
			if client != nil && client.Disconnected() {
				return clientDisconnected
			}
			nextCheck = x.now.Add(disconnectCheckInterval)
		}
		if wake == nil && !x.now.Before(nextFetch) {
			slot = e.polls.Questions()
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// holdResponse reports whether core's response may be held back, and returns the target for what follows it. The client's target
// cannot be repeated, because its cursor may be "now", which is a later position each time.
func (x *exchange) holdResponse(target []byte) (rest []byte, waits bool) {
	answer := &x.ctx.Response
	if x.response.PollWait <= 0 || answer.IsBodyStream() || answer.StatusCode() != fasthttp.StatusOK {
		return nil, false
	}
	x.response.PollWait = min(x.response.PollWait, maxPollWait)
	var page struct {
		Next string `json:"next"`
	}
	path, query, _ := bytes.Cut(target, []byte("?"))
	parameters, err := url.ParseQuery(string(query))
	if err != nil || json.Unmarshal(answer.Body(), &page) != nil || page.Next == "" {
		return nil, false
	}
	parameters.Set("after", page.Next)
	answer.SwapBody(bytes.Clone(answer.Body())) // the buffer may be as large as the largest body that it has held
	return append(append(bytes.Clone(path), '?'), parameters.Encode()...), true
}

// dropResponse removes core's response, except for the RateLimit fields.
func (x *exchange) dropResponse() {
	x.ctx.Response.Reset()
	x.ctx.Response.Header.SetNoDefaultContentType(true)
	x.setRateLimit()
}

// tooManyPolls is the reply to a poll over the bounds.
func tooManyPolls(err error) *reply {
	switch {
	case errors.Is(err, polls.ErrTooManyOfKey):
		return keyPolls
	case errors.Is(err, polls.ErrTooManyOfAccount):
		return accountPolls
	default:
		return allPolls
	}
}
