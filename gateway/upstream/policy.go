package upstream

import (
	"context"
	"time"
)

// policy is how a request is sent: what an attempt may take, and what follows one that failed. Whoever describes the request chooses it.
type policy struct {
	// attempt has the options of the first attempt. Its deadline is that of all attempts together.
	attempt attemptOptions
	retry   retry
}

// retry is what follows a failed attempt. Whatever it says, a request that core has not carried out goes to the next core, and one that core may
// have carried out is sent again only if it is replayable.
type retry struct {
	// everyCore asks one core after another until one responds with a status below 500, and the last response stands. Each attempt may
	// wait for a connection, and leaves half of the time to the next core, if one is up. Otherwise at most maxAttempts are sent without an
	// outcome, the first response stands, and ErrBusy ends the request.
	everyCore bool
	// wait is how long core may hold the first response back, beyond the half of the time.
	wait time.Duration
	// target replaces Request.Target from the second attempt on, which has no wait; empty for the same.
	target string
}

// attemptOptions are the rules of one attempt.
type attemptOptions struct {
	// ctx aborts the attempt. It never ends for a client's request, which Request.Peer aborts.
	ctx   context.Context
	began time.Time
	// deadline bounds the dial, the wait for the response, and the complete response unless it streams. All attempts of a client's
	// request share it.
	deadline time.Time
	// replayable requests may be executed twice without harm.
	replayable bool
	// pool is the one whose connections the attempt may take.
	pool poolKind
	// maxBody bounds a body that is buffered.
	maxBody int
	// newConn excludes idle connections.
	newConn bool
	// alone excludes batches.
	alone bool
	// waiter is what waits for the response; nil if only ctx aborts the attempt.
	waiter waiter
}

// waiter is what waits for core's response: a client's request, a member of a group, or a batch.
type waiter interface {
	// tick is called every checkInterval of the wait, and returns why to abort it, nil to continue.
	tick() error
}

// clientPolicy is that of a client's request: its load on failing cores is at most doubled.
func (c *Client) clientPolicy(r *Request) policy {
	return policy{attempt: attemptOptions{
		ctx: context.Background(), began: r.Began, deadline: r.Began.Add(max(c.timeout, r.MinTimeout)),
		replayable: r.IsReplayable(), pool: r.pool(), maxBody: maxBufferedBody, waiter: r,
	}}
}

// pool returns the one for a client's request.
func (r *Request) pool() poolKind {
	switch {
	case !r.hasKey():
		return keylessPool
	case r.Stream:
		return streamedPool
	default:
		return shortPool
	}
}

// attemptDeadline returns the deadline of an attempt that begins now: half of the time that is left, without the wait, if another core is up.
func (y *retry) attemptDeadline(began, deadline time.Time, otherUp bool) time.Time {
	if !otherUp {
		return deadline
	}
	left := deadline.Sub(began)
	wait := min(y.wait, left)
	return began.Add(wait + (left-wait)/2)
}

// next prepares the attempt after the first.
func (y *retry) next(r *Request) {
	if y.target != "" {
		r.Target, y.wait = []byte(y.target), 0
	}
}

// hadTime reports whether an attempt had so much of the request's time that its end is the core's failure: half of it, or, with every core
// asked, the attempt's share and not only what the caller had left.
func (p *policy) hadTime(began, attemptDeadline time.Time) bool {
	deadline := p.attempt.deadline
	if p.retry.everyCore {
		return attemptDeadline.Before(deadline)
	}
	return deadline.Sub(began) >= deadline.Sub(p.attempt.began)/2
}
