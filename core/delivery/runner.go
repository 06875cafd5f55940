package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/event"
	"intents.internal/core/postgres"
	"intents.internal/core/webhook"
)

// reloadEvery is how long a loaded endpoint is used. Then it is loaded again, because it may have changed and other processes may
// have created deliveries for it.
const reloadEvery = time.Second

// runner sends to one leased endpoint. Other goroutines may use only stop and wake.
type runner struct {
	*Dispatcher
	id   uuid.UUID
	wake chan struct{}
	// stop closes lost when another process has the lease.
	lost chan struct{}
	stop func()
	// again means that start was called since the last load. The dispatcher's mu guards it.
	again bool
	// inFlight are the events that are being sent or recorded; sending is the number of those being sent.
	inFlight map[event.ID]bool
	sending  int
	steps    chan step
}

// step is a step of an attempt: first, with ended false, its request is over; then, with ended true, the attempt is over, and ok
// is false if its outcome is not recorded.
type step struct {
	id        event.ID
	ended, ok bool
}

// start starts a runner for a leased endpoint, or wakes the present one.
func (d *Dispatcher) start(work context.Context, id uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.runners[id]; r != nil {
		r.again = true
		signal(r.wake)
		return
	}
	r := &runner{
		Dispatcher: d, id: id, wake: make(chan struct{}, 1), lost: make(chan struct{}), inFlight: map[event.ID]bool{},
		steps: make(chan step, perEndpoint),
	}
	r.stop = sync.OnceFunc(func() { close(r.lost) })
	d.runners[id] = r
	d.running.Go(func() { r.run(work) })
}

// run sends until nothing is due and the lease is released. If the database or the secret failed, it does not release the lease,
// so that nothing is sent to the endpoint until the lease expires.
func (r *runner) run(work context.Context) {
	for ends := false; !ends; {
		ok, stopping := r.send(work), r.stopping()
		if ok && !r.release(stopping) {
			continue
		}
		r.mu.Lock()
		again := r.again && ok
		if ends = stopping || !again; ends {
			delete(r.runners, r.id)
		}
		r.mu.Unlock()
		if again {
			signal(r.sweepNow) // start was called while the lease was released: the endpoint must be leased again
		}
	}
}

// send makes the due attempts until there are none or the runner must stop. It returns when none is in flight; ok is false for a
// failure that is not the receiver's.
func (r *runner) send(work context.Context) (ok bool) {
	ok = true
	for more := true; more && ok && !r.stopping(); {
		if loaded := r.load(); loaded.err != nil {
			ok = false
		} else {
			more, ok = r.sendLoaded(work, loaded.due)
		}
	}
	for len(r.inFlight) > 0 {
		ok = r.take(<-r.steps) && ok
	}
	return ok
}

// sendLoaded makes the loaded attempts, up to the endpoint's bound in flight, until the due deliveries must be loaded again. more
// is false if all due deliveries were loaded and nothing is in flight.
func (r *runner) sendLoaded(work context.Context, due postgres.DueDeliveries) (more, ok bool) {
	most, slots := perEndpoint, r.healthy
	if due.Endpoint != nil && due.Endpoint.FailingSince != nil {
		most, slots = perFailing, r.failing
	}
	queue, more := r.notInFlight(due.Deliveries), len(due.Deliveries) == perLoad
	begun := len(queue) > 0
	timer := time.NewTimer(reloadEvery)
	defer timer.Stop()
	for {
		for len(queue) > 0 && r.sending < most {
			next := queue[0]
			queue = queue[1:]
			r.inFlight[next.EventID] = true
			r.sending++
			go func() { r.steps <- step{next.EventID, true, r.attempt(work, slots, due.Endpoint, next)} }()
		}
		if len(r.inFlight) == 0 || len(queue) == 0 && more && begun && r.sending < most {
			return more, true
		}
		select {
		case s := <-r.steps:
			if !r.take(s) {
				return false, false
			}
			begun = begun || s.ended
		case <-r.wake:
			more = true
		case <-timer.C:
			return true, true
		case <-r.lost:
			return false, true
		case <-r.draining:
			return false, true
		}
	}
}

// notInFlight returns the deliveries that are neither being sent nor recorded.
func (r *runner) notInFlight(all []postgres.DueDelivery) []postgres.DueDelivery {
	return slices.DeleteFunc(all, func(d postgres.DueDelivery) bool { return r.inFlight[d.EventID] })
}

func (r *runner) stopping() bool {
	select {
	case <-r.lost:
		return true
	case <-r.draining:
		return true
	default:
		return false
	}
}

// load reads the endpoint and its due deliveries.
func (r *runner) load() loaded {
	r.mu.Lock()
	r.again = false
	r.mu.Unlock()
	answer := make(chan loaded, 1)
	r.loads <- load{r.id, answer}
	return <-answer
}

// take processes a step of an attempt; ok is false if its outcome is not recorded.
func (r *runner) take(s step) (ok bool) {
	if !s.ended {
		r.sending--
		return true
	}
	delete(r.inFlight, s.id)
	return s.ok
}

// attempt makes the request and records its outcome.
func (r *runner) attempt(work context.Context, slots chan struct{}, endpoint *webhook.Endpoint, due postgres.DueDelivery) (ok bool) {
	attempt, ok := r.post(work, slots, endpoint, due)
	r.steps <- step{id: due.EventID}
	if attempt == nil {
		return ok
	}
	written := make(chan bool, 1)
	r.records <- record{postgres.AttemptRecord{Endpoint: endpoint, Delivery: due.Delivery, Attempt: *attempt}, written}
	return <-written
}

// post waits for a slot and makes the request. The attempt is nil if there was none: with ok true no slot was free in time and
// the delivery is unchanged; with ok false the attempt failed or the dispatcher cut it off.
func (r *runner) post(work context.Context, slots chan struct{}, endpoint *webhook.Endpoint, due postgres.DueDelivery) (made *webhook.Attempt, ok bool) {
	timer := time.NewTimer(reloadEvery)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-timer.C:
		return nil, true
	case <-r.lost:
		return nil, true
	case <-r.draining:
		return nil, true
	}
	now := r.Store.Now()
	if due.Event == nil {
		return &webhook.Attempt{Outcome: webhook.EventGone, EndedAt: now}, true
	}
	secrets, err := r.Sealer.Secrets(endpoint, now)
	if err != nil {
		r.Log.Error("a webhook's secret cannot be opened; nothing is sent to it", "webhook_id", endpoint.ID, "error", err)
		return nil, false
	}
	body, err := due.Event.Body()
	if err != nil {
		r.Log.Error("the body of an event cannot be written", "event_id", due.EventID.String(), "error", err)
		return nil, false
	}
	r.metrics.began(endpoint, due, now)
	attempt := r.Client.Send(work, Message{URL: endpoint.URL, ID: due.EventID.String(), Body: body, Secrets: secrets})
	if work.Err() != nil {
		return nil, false
	}
	r.metrics.attempts.WithLabelValues(string(attempt.Outcome)).Inc()
	return &attempt, true
}

// release releases the lease, unless deliveries are due and the runner is not stopping, and reports whether it did.
func (r *runner) release(stopping bool) bool {
	released := make(chan bool, 1)
	r.releases <- release{r.id, stopping, released}
	return <-released
}
