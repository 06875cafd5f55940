package rpc

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	defaultRate     = 50
	defaultRange    = 2000
	defaultMaxRange = 10_000

	minPause = time.Second
	maxPause = time.Minute
	// maxRetryAfter bounds the Retry-After of a node.
	maxRetryAfter = 10 * time.Minute
	// silentShare is how many times as long as it took a node not to answer it is left alone: it costs a tenth of the time.
	silentShare = 9
	// halfLife is the time in which a success or a failure loses half its weight.
	halfLife = 30 * time.Second
	// batchLimitFor is how long a node's limit of calls in a request is kept. After that one request tries more.
	batchLimitFor = time.Hour
	// slowBatchFor is how long a batch that took too long is not tried again.
	slowBatchFor = 10 * time.Minute
	// minTimedBatch is the batch that timeouts do not shrink: logs and the block that proves them must stay in one request.
	minTimedBatch = 5
)

// health is the state of a provider's node: how many calls it accepts, and how well it responds.
type health struct {
	mu      sync.Mutex
	limiter *rate.Limiter
	maxRate rate.Limit
	// pause is the length of the last pause. The next is twice as long unless a success comes first.
	pause       time.Duration
	pausedAt    time.Time
	pausedUntil time.Time
	// logBlocks is how many blocks of logs to ask for.
	logBlocks, maxLogBlocks uint64
	// batch is how many calls to send in a request, and maxBatch the most until limitedUntil.
	batch, maxBatch   int
	limitedUntil      time.Time
	failed, succeeded float64
	countedAt         time.Time
	// noAnswer means that the last request had no answer, and restUntil is until when others are asked instead.
	noAnswer  bool
	restUntil time.Time
}

func newHealth(e Endpoint) *health {
	h := &health{maxRate: defaultRate, logBlocks: defaultRange, maxLogBlocks: defaultMaxRange, batch: maxBatch, maxBatch: maxBatch}
	if e.RequestsPerSecond > 0 {
		h.maxRate = rate.Limit(e.RequestsPerSecond)
	}
	if e.MaxRange > 0 {
		h.logBlocks, h.maxLogBlocks = e.MaxRange, e.MaxRange
	}
	h.limiter = rate.NewLimiter(h.maxRate, max(1, int(math.Ceil(float64(h.maxRate)))))
	return h
}

// wait returns when n calls may be sent. It fails at once while the provider is paused, or if the context would end before their
// turn.
func (h *health) wait(ctx context.Context, n int) error {
	if left := h.paused(); left > 0 {
		return &failure{kind: ErrRate, text: fmt.Sprintf("switched off for another %v", left.Round(time.Millisecond))}
	}
	for burst := h.limiter.Burst(); n > 0; n -= burst {
		err := h.limiter.WaitN(ctx, min(n, burst))
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the turn that requestsPerSecond gives: %w", ctx.Err())
		}
		if err != nil {
			return &failure{kind: ErrRate, text: "requestsPerSecond leaves no time before the deadline"}
		}
	}
	return nil
}

// busy reports whether less than half of a second's calls are left.
func (h *health) busy() bool { return h.limiter.Tokens() < float64(h.limiter.Burst())/2 }

// paused is how long the provider remains paused.
func (h *health) paused() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.pausedUntil)
}

// limited halves the rate and pauses the provider after the node rejected a request for its rate. Concurrent rejections count
// once.
func (h *health) limited(sent time.Time, retryAfter time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sent.Before(h.pausedAt) {
		return
	}
	h.pause = min(max(minPause, 2*h.pause), maxPause)
	h.pausedAt = time.Now()
	h.pausedUntil = h.pausedAt.Add(max(h.pause, min(retryAfter, maxRetryAfter)))
	h.limiter.SetLimit(max(h.limiter.Limit()/2, h.maxRate/64))
	h.count(&h.failed)
}

// fail counts a request that failed after a time. After one without an answer the provider rests for silentShare times as long: a node that
// answers its verification and nothing else would cost a timeout a poll.
func (h *health) fail(noAnswer bool, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noAnswer = noAnswer; noAnswer {
		h.restUntil = time.Now().Add(min(silentShare*took, maxPause))
	}
	h.count(&h.failed)
}

// silent reports whether the last request had no answer.
func (h *health) silent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.noAnswer
}

// rests reports whether others are asked instead.
func (h *health) rests() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Before(h.restUntil)
}

// succeed raises the rate by a hundredth of the configured one.
func (h *health) succeed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pause, h.noAnswer = 0, false
	h.limiter.SetLimit(min(h.limiter.Limit()+h.maxRate/100, h.maxRate))
	h.count(&h.succeeded)
}

// count adds one to a count, after both have decayed.
func (h *health) count(which *float64) {
	h.decay()
	*which++
}

func (h *health) decay() {
	now := time.Now()
	factor := math.Exp2(-float64(now.Sub(h.countedAt)) / float64(halfLife))
	h.failed, h.succeeded, h.countedAt = h.failed*factor, h.succeeded*factor, now
}

// failing reports whether more requests failed than succeeded recently. It ends half a minute after a single failure, so that the
// node is tried again.
func (h *health) failing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.decay()
	return h.failed > h.succeeded && h.failed > 0.5
}

// shrink halves the range of blocks after that many were too many.
func (h *health) shrink(blocks uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logBlocks = max(1, min(h.logBlocks, blocks)/2)
}

// grow adds a tenth to the range of blocks after a whole range was answered.
func (h *health) grow(blocks uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if blocks >= h.logBlocks {
		h.logBlocks = min(h.logBlocks+max(1, h.logBlocks/10), h.maxLogBlocks)
	}
}

func (h *health) logRange() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.logBlocks
}

func (h *health) batchSize() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.batch
}

// limitBatch keeps that the node takes fewer than so many calls in a request, and half of them.
func (h *health) limitBatch(calls int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.maxBatch, h.limitedUntil = min(h.maxBatch, calls-1), time.Now().Add(batchLimitFor)
	h.batch = min(h.batch, calls/2)
}

// shrinkBatch halves the batch after so many calls took too long.
func (h *health) shrinkBatch(calls int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(slowBatchFor); until.After(h.limitedUntil) {
		h.limitedUntil = until
	}
	h.maxBatch = min(h.maxBatch, max(minTimedBatch, calls-1))
	h.batch = min(h.batch, max(minTimedBatch, calls/2))
}

// growBatch adds a tenth to the batch after a whole one was answered.
func (h *health) growBatch(calls int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !time.Now().Before(h.limitedUntil) {
		h.maxBatch = maxBatch
	}
	if calls >= h.batch {
		h.batch = min(h.batch+max(1, h.batch/10), h.maxBatch)
	}
}
