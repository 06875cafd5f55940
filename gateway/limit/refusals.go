package limit

import (
	"math"
	"sync/atomic"
	"time"

	"intents.internal/pkg/tokenbucket"
)

// Refusals remembers the last refusal of one key, so that its repetitions look up neither bucket. It also keeps the reply to them for
// as long as a new reply would be the same. The zero value remembers nothing. It is safe for concurrent use.
type Refusals struct{ last atomic.Pointer[refusal] }

// refusal is a request that Redis could only refuse.
type refusal struct {
	request
	reply atomic.Pointer[keptReply]
}

// keptReply is a reply to the requests from one time to another, unless a bucket was updated since.
type keptReply struct {
	reply       any
	from, until time.Time
	updates     uint64
}

// Repeat returns the reply that Keep stored, and counts a refusal. It returns nil if a new reply might not be the same.
func (l *Limiter) Repeat(r *Refusals, now time.Time) (reply any) {
	if reply = r.kept(now); reply != nil {
		l.metrics.refusedFromMemory.Inc()
	}
	return reply
}

func (r *Refusals) kept(now time.Time) (reply any) {
	last := r.last.Load()
	if last == nil {
		return nil
	}
	kept := last.reply.Load()
	if kept == nil || now.Before(kept.from) || !now.Before(kept.until) || kept.updates != last.updates() {
		return nil
	}
	return kept.reply
}

// Keep stores the reply to a refusal that Take has returned at the time now. Of the decision, the reply may tell Wait in milliseconds,
// ResetAfter in seconds, both rounded up, and what does not change with time.
func (r *Refusals) Keep(reply any, d Decision, now time.Time) {
	last := r.last.Load()
	if last == nil {
		return
	}
	kept := &keptReply{reply: reply, from: now, updates: last.updates()}
	if again, refused := last.cachedRefusal(now); !refused || again != d { // a bucket was updated since Take
		return
	}
	kept.until = now.Add(min(untilNext(d.Wait(), time.Millisecond), last.key.unchanged(d.Quota, now), last.account.unchanged(d.Account, now)))
	last.reply.Store(kept)
}

// take returns the refusal of a request if the key's last refusal lasts.
func (r *Refusals) take(now time.Time) (d Decision, refused bool) {
	last := r.last.Load()
	if last == nil {
		return Decision{}, false
	}
	if d, refused = last.cachedRefusal(now); !refused {
		r.last.CompareAndSwap(last, nil) // it must not hold copies that the cache has evicted
	}
	return d, refused
}

// updates changes with every update of the request's buckets.
func (r request) updates() uint64 {
	return uint64(r.key.updates.Load())<<32 | uint64(r.account.updates.Load())
}

// unchanged returns how long a quota of the bucket at the time now stays the same, with ResetAfter in seconds, rounded up.
func (b *bucket) unchanged(q Quota, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := untilNext(q.ResetAfter, time.Second)
	if filled := b.tat.Sub(now); filled > 0 {
		emissionInterval, burstOffset := tokenbucket.Rule(q.Rule).Intervals()
		d = min(d, emissionInterval-(burstOffset-filled)%emissionInterval) // one more token, or the first
	}
	if forgotten := refusalTTL - now.Sub(b.askedAt); forgotten >= 0 {
		d = min(d, forgotten)
	}
	return d
}

// untilNext returns the time until d, which decreases, is a unit less when it is rounded up.
func untilNext(d, unit time.Duration) time.Duration {
	if d <= 0 {
		return math.MaxInt64
	}
	return (d-1)%unit + 1
}
