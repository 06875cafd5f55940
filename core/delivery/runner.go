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

// reloadEvery is how long the loaded state of an endpoint is used. After that it is read again, because the endpoint may have
// changed or have new deliveries.
const reloadEvery = time.Second

// runner sends to one leased endpoint. Only its own goroutine may use it, except for stop and wake.
type runner struct {
	*Dispatcher
	id   uuid.UUID
	wake chan struct{}
	// lost is closed by stop, once another process has the lease.
	lost chan struct{}
	stop func()
	// reload is set if new deliveries were reported since the last load. The dispatcher's mu guards it.
	reload bool
	// inFlight are the events that are being sent or recorded, and sending is how many of them are being sent.
	inFlight map[event.ID]bool
	sending  int
	steps    chan step
}

// step is a step of an attempt: first its request has ended, then its result is recorded, or not if ok is false.
type step struct {
	id        event.ID
	ended, ok bool
}

// start sends the deliveries of a leased endpoint, with its runner or a new one.
func (d *Dispatcher) start(work context.Context, id uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.runners[id]; r != nil {
		r.reload = true
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

// run sends until nothing is due, and then releases the lease. If the database or the secret failed, it lets the lease expire
// instead, so that nothing is sent to the endpoint until then.
func (r *runner) run(work context.Context) {
	for done := false; !done; {
		ok, stopping := r.send(work), r.stopping()
		if ok && !r.release(stopping) {
			continue
		}
		r.mu.Lock()
		reload := r.reload && ok
		if done = stopping || !reload; done {
			delete(r.runners, r.id)
		}
		r.mu.Unlock()
		if reload {
			signal(r.sweepNow) // new deliveries were reported during the release: the endpoint is leased again, or must be
		}
	}
}

// send makes the due attempts until there are none or the runner must stop. It returns when no attempt is in flight; ok is false
// if something failed that is not the receiver's fault.
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
		ok = r.handle(<-r.steps) && ok
	}
	return ok
}

// sendLoaded makes the loaded attempts, up to the endpoint's limit concurrently, until the due deliveries must be loaded again.
// more is false if they need not be: all due deliveries were loaded, and no attempt is in flight.
func (r *runner) sendLoaded(work context.Context, due postgres.DueDeliveries) (more, ok bool) {
	limit, slots := perEndpoint, r.healthy
	if due.Endpoint != nil && due.Endpoint.FailingSince != nil {
		limit, slots = perFailing, r.failing
	}
	queue, more := r.notInFlight(due.Deliveries), len(due.Deliveries) == perLoad
	progressed := len(queue) > 0
	timer := time.NewTimer(reloadEvery)
	defer timer.Stop()
	for {
		for len(queue) > 0 && r.sending < limit {
			next := queue[0]
			queue = queue[1:]
			r.inFlight[next.EventID] = true
			r.sending++
			go func() { r.steps <- step{next.EventID, true, r.attempt(work, slots, due.Endpoint, next)} }()
		}
		if len(r.inFlight) == 0 || len(queue) == 0 && more && progressed && r.sending < limit {
			return more, true
		}
		select {
		case s := <-r.steps:
			if !r.handle(s) {
				return false, false
			}
			progressed = progressed || s.ended
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
	r.reload = false
	r.mu.Unlock()
	reply := make(chan loaded, 1)
	r.loads <- load{r.id, reply}
	return <-reply
}

// handle processes a step of an attempt; ok is false if its result is not recorded.
func (r *runner) handle(s step) (ok bool) {
	if !s.ended {
		r.sending--
		return true
	}
	delete(r.inFlight, s.id)
	return s.ok
}

// attempt sends an event and records the result.
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

// post waits for a slot and makes the request. The result is nil if there was no attempt: no slot was free in time, or the runner
// stops, and the delivery stays due; with ok false, the attempt failed or was canceled by the end of the dispatcher.
func (r *runner) post(work context.Context, slots chan struct{}, endpoint *webhook.Endpoint, due postgres.DueDelivery) (result *webhook.Attempt, ok bool) {
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
	r.metrics.observeFirstAttempt(endpoint, due, now)
	attempt := r.Client.Send(work, Message{URL: endpoint.URL, ID: due.EventID.String(), Body: body, Secrets: secrets})
	if work.Err() != nil {
		return nil, false
	}
	r.metrics.attempts.WithLabelValues(string(attempt.Outcome)).Inc()
	return &attempt, true
}

// release releases the lease and reports true, unless deliveries are due and the runner must continue.
func (r *runner) release(stopping bool) bool {
	released := make(chan bool, 1)
	r.releases <- release{r.id, stopping, released}
	return <-released
}
