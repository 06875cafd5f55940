package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/event"
	"intents.internal/core/postgres"
	"intents.internal/core/webhook"
)

const (
	// recheckEvery is how often an endpoint with requests in flight is asked for further deliveries.
	recheckEvery = time.Second
	// maxWait is how long a delivery that was read waits for its turn. After it the endpoint may have changed, and is read again.
	maxWait = time.Second
)

// runner sends to one leased endpoint. All but stop and wake is its own goroutine's.
type runner struct {
	*Dispatcher
	id   uuid.UUID
	wake chan struct{}
	// lost is closed by stop, once another process has the lease.
	lost chan struct{}
	stop func()
	// again means that somebody has told of deliveries since the last load. The dispatcher's mu guards it.
	again bool
	// inFlight are the events that are being sent, and ended takes each when it is.
	inFlight map[event.ID]bool
	ended    chan ended
}

// ended is the end of an attempt; recorded is false if its outcome could not be written or there is none.
type ended struct {
	id       event.ID
	recorded bool
}

// start has the deliveries of a leased endpoint sent, by the runner that it has or a new one.
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
		ended: make(chan ended, perEndpoint),
	}
	r.stop = sync.OnceFunc(func() { close(r.lost) })
	d.runners[id] = r
	d.running.Go(func() { r.run(work) })
}

// run sends until nothing is due and the lease is given back. It keeps the lease until it runs out if the database or the secret failed, so
// that the endpoint is left alone for so long.
func (r *runner) run(work context.Context) {
	for ok := true; ok; {
		if ok = r.send(work); ok && !r.release() {
			continue
		}
		r.mu.Lock()
		again := r.again && ok
		if !again {
			delete(r.runners, r.id)
		}
		r.mu.Unlock()
		if !again {
			return
		}
		signal(r.sweepNow) // somebody told of deliveries while the lease was given back: it is leased again, or to be
	}
}

// send makes the attempts that are due until there are none or the runner is to stop. It returns when none is in flight; ok is false if
// something failed that is not the receiver's fault.
func (r *runner) send(work context.Context) (ok bool) {
	ok = true
	recheck := time.NewTicker(recheckEvery)
	defer recheck.Stop()
	for ok && !r.stopping() {
		loaded := r.load()
		if loaded.err != nil {
			ok = false
			break
		}
		r.begin(work, loaded.due)
		if len(r.inFlight) == 0 {
			break
		}
		ok = r.await(recheck.C, len(loaded.due.Deliveries) == perEndpoint)
	}
	for len(r.inFlight) > 0 {
		ok = r.end(<-r.ended) && ok
	}
	return ok
}

// await returns when the due deliveries are to be read again: where those that were read are not all, as soon as an attempt ends.
func (r *runner) await(recheck <-chan time.Time, notAll bool) (ok bool) {
	for len(r.inFlight) > 0 {
		select {
		case e := <-r.ended:
			if ok := r.end(e); !ok || notAll {
				return ok
			}
		case <-r.wake:
			return true
		case <-recheck:
			return true
		case <-r.lost:
			return true
		case <-r.draining:
			return true
		}
	}
	return true
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

// begin begins the attempts that are not in flight yet, as many as the endpoint may have.
func (r *runner) begin(work context.Context, due postgres.DueDeliveries) {
	most, slots := perEndpoint, r.healthy
	if due.Endpoint != nil && due.Endpoint.FailingSince != nil {
		most, slots = perFailing, r.failing
	}
	for _, one := range due.Deliveries {
		if len(r.inFlight) >= most {
			return
		}
		if r.inFlight[one.EventID] {
			continue
		}
		r.inFlight[one.EventID] = true
		go func() { r.ended <- ended{one.EventID, r.attempt(work, slots, due.Endpoint, one)} }()
	}
}

// end takes the end of an attempt and of those that have ended meanwhile.
func (r *runner) end(e ended) (ok bool) {
	ok = true
	for {
		ok = ok && e.recorded
		delete(r.inFlight, e.id)
		select {
		case e = <-r.ended:
		default:
			return ok
		}
	}
}

// attempt waits for its turn, sends and records what came of it. A delivery whose turn does not come in time is left as it is.
func (r *runner) attempt(work context.Context, slots chan struct{}, endpoint *webhook.Endpoint, due postgres.DueDelivery) (ok bool) {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
	case <-timer.C:
		return true
	case <-r.lost:
		return true
	case <-r.draining:
		return true
	}
	attempt, ok := r.post(work, endpoint, due)
	<-slots
	if !ok {
		return false
	}
	written := make(chan bool, 1)
	r.records <- record{postgres.AttemptRecord{Endpoint: endpoint, Delivery: due.Delivery, Attempt: attempt}, written}
	return <-written
}

// post makes the request. ok is false if there was none, or if it was cut off by the end of the dispatcher.
func (r *runner) post(work context.Context, endpoint *webhook.Endpoint, due postgres.DueDelivery) (attempt webhook.Attempt, ok bool) {
	now := r.Store.Now()
	if due.Event == nil {
		return webhook.Attempt{Outcome: webhook.EventGone, EndedAt: now}, true
	}
	secrets, err := r.Sealer.Secrets(endpoint, now)
	if err != nil {
		r.Log.Error("a webhook's secret cannot be opened; nothing is sent to it", "webhook_id", endpoint.ID, "error", err)
		return webhook.Attempt{}, false
	}
	body, err := due.Event.Body()
	if err != nil {
		r.Log.Error("the body of an event cannot be written", "event_id", due.EventID.String(), "error", err)
		return webhook.Attempt{}, false
	}
	r.metrics.began(endpoint, due, now)
	attempt = r.Client.Send(work, Message{URL: endpoint.URL, ID: due.EventID.String(), Body: body, Secrets: secrets})
	if work.Err() != nil {
		return webhook.Attempt{}, false
	}
	r.metrics.attempts.WithLabelValues(string(attempt.Outcome)).Inc()
	return attempt, true
}

// release gives the lease back unless deliveries are due, and reports whether it did.
func (r *runner) release() bool {
	released := make(chan bool, 1)
	r.releases <- release{r.id, released}
	return <-released
}
