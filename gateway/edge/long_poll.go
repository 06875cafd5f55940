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
	// minQuestionInterval is the least time between two questions of one long poll to core. It doubles with every question in
	// vain, up to maxQuestionInterval: the poll may leave out all that its account is busy with.
	minQuestionInterval, maxQuestionInterval = 50 * time.Millisecond, 200 * time.Millisecond
	// lookInterval is how often a parked request checks whether its client has disconnected.
	lookInterval = time.Second
	// maxPollWait bounds what core may say of a wait, which the interface bounds too.
	maxPollWait = 25 * time.Second
)

// isLongPoll reports whether a request for events has a wait. Which values are valid is for core to say.
func isLongPoll(target []byte) bool {
	_, query, _ := bytes.Cut(target, []byte("?"))
	for parameter := range bytes.SplitSeq(query, []byte("&")) {
		if wait, found := bytes.CutPrefix(parameter, []byte("wait=")); found && len(bytes.Trim(wait, "0")) > 0 {
			return true
		}
	}
	return false
}

// longPoll forwards a request for events that may wait for one. Core answers at once. An empty answer that may wait is kept
// while the request is parked; the client gets it when the wait is over. A parked request holds no connection to core and takes
// no token of its rate limit.
//
// Core is asked again after news of the account. The poll is registered for news before the first question, so that none is
// lost in between; and as the key may have been revoked meanwhile, it is verified again.
func (e *Edge) longPoll(x *exchange, target []byte) *reply {
	poll, err := e.polls.Acquire(x.verdict.KeyID(), x.verdict.AccountID(), x.verdict.Environment())
	if err != nil {
		return tooManyPolls(err)
	}
	defer poll.Release()
	x.mayPark = true
	interval := minQuestionInterval
	refusal := e.forwardList(x, target)
	for refusal == nil {
		rest, waits := x.keepAnswer(target)
		if !waits {
			return nil
		}
		switch e.park(x, poll, interval) {
		case waitOver:
			return nil
		case clientLeft:
			x.dropAnswer()
			return clientGone
		case hasNews:
			refusal = e.askAgain(x, rest)
		}
		target, interval = rest, min(2*interval, maxQuestionInterval)
	}
	return refusal
}

// askAgain asks core for the events after those of the kept answer, which it drops. It ends the poll's place among those that
// ask.
func (e *Edge) askAgain(x *exchange, target []byte) *reply {
	defer func() { <-e.polls.Questions() }()
	x.dropAnswer()
	if refusal := e.verifyKey(x); refusal != nil {
		return refusal
	}
	return e.forwardList(x, target)
}

// parkEnd is why a request is parked no longer.
type parkEnd int

const (
	// waitOver says that the client is to get the kept answer: its wait is over, or the gateway drains.
	waitOver parkEnd = iota
	// hasNews says that core is to be asked again; the poll has a place among those that ask.
	hasNews
	clientLeft
)

// park waits for news of the poll's account, at least for the interval since core was asked, and at most for the wait that core
// allowed since the request arrived.
func (e *Edge) park(x *exchange, poll *polls.Poll, interval time.Duration) parkEnd {
	began, conn := x.now, connOf(x.ctx)
	defer func() { x.parked += x.now.Sub(began) }()
	until, askable, look := x.began.Add(x.request.PollWait), x.request.Began.Add(interval), began.Add(lookInterval)
	news, question := poll.News(), chan<- struct{}(nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next := earlier(until, look)
		if news == nil && question == nil {
			next = earlier(next, askable)
		}
		timer.Reset(next.Sub(x.now))
		select {
		case <-e.polls.Draining():
			x.now = time.Now()
			return waitOver
		case question <- struct{}{}:
			x.now = time.Now()
			return hasNews
		case <-news:
			news = nil
		case <-timer.C:
		}
		x.now = time.Now()
		if !x.now.Before(until) {
			return waitOver
		}
		if !x.now.Before(look) {
			if conn != nil && conn.Disconnected() {
				return clientLeft
			}
			look = x.now.Add(lookInterval)
		}
		if news == nil && !x.now.Before(askable) {
			question = e.polls.Questions()
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// keepAnswer reports whether core's answer may be held back, and returns the target that asks for what comes after it: the
// cursor that the client sent may be "now", which is another moment each time.
func (x *exchange) keepAnswer(target []byte) (rest []byte, waits bool) {
	answer := &x.ctx.Response
	if x.request.PollWait <= 0 || answer.IsBodyStream() || answer.StatusCode() != fasthttp.StatusOK {
		return nil, false
	}
	x.request.PollWait = min(x.request.PollWait, maxPollWait)
	var page struct {
		Next string `json:"next"`
	}
	path, query, _ := bytes.Cut(target, []byte("?"))
	parameters, err := url.ParseQuery(string(query))
	if err != nil || json.Unmarshal(answer.Body(), &page) != nil || page.Next == "" {
		return nil, false
	}
	parameters.Set("after", page.Next)
	answer.SwapBody(bytes.Clone(answer.Body())) // its buffer may be as large as the largest body that it has held
	return append(append(bytes.Clone(path), '?'), parameters.Encode()...), true
}

// dropAnswer takes back core's answer, and leaves the RateLimit fields.
func (x *exchange) dropAnswer() {
	x.ctx.Response.Reset()
	x.ctx.Response.Header.SetNoDefaultContentType(true)
	x.setRateLimit()
}

// tooManyPolls is the reply to a poll that was not let in.
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
