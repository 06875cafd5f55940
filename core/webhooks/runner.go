package webhooks

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/pkg/fair"
)

// searchEvery is how often a runner that sends searches for further due deliveries without being woken.
const searchEvery = time.Second

// runner sends to one leased endpoint. Only its own goroutine may use it, except for stop, wake and the fields of the dispatcher.
type runner struct {
	*Dispatcher
	LeasedWebhook
	// leasedFailing is whether the endpoint was failing when the lease was taken, at started.
	leasedFailing bool
	started       time.Time
	wake          chan struct{}
	// lost is closed by stop: another process has the lease, or gets it.
	lost chan struct{}
	stop func()
	// reload is set if new deliveries were reported since the last load. The dispatcher's mu guards it.
	reload bool
	// inFlight are the events that are being sent or recorded, and sending is how many of them have a slot.
	inFlight map[feed.ID]bool
	sending  int
	steps    chan step
}

// step is a step of an attempt: first its request has ended, then its result is recorded, or not if ok is false.
type step struct {
	id                   feed.ID
	ended, ok, succeeded bool
}

// start sends the deliveries of a leased endpoint, with its runner or a new one.
func (d *Dispatcher) start(work context.Context, leased LeasedWebhook) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.runners[leased.ID]; r != nil {
		r.reload = true
		signal(r.wake)
		return
	}
	r := &runner{
		Dispatcher: d, LeasedWebhook: leased, leasedFailing: leased.Failing, started: time.Now(), wake: make(chan struct{}, 1), lost: make(chan struct{}),
		inFlight: map[feed.ID]bool{}, steps: make(chan step, perEndpoint),
	}
	r.stop = sync.OnceFunc(func() { close(r.lost) })
	d.runners[leased.ID] = r
	d.running.Go(func() { r.run(work) })
}

// run sends until nothing is due, and then releases the lease. The lease of a failing endpoint is released after one round of
// attempts without a success, so that all failing endpoints get their turn. If the database or the secret failed, run lets the lease
// expire instead, so that nothing is sent to the endpoint until then.
func (r *runner) run(work context.Context) {
	for done := false; !done; {
		wasFailing := r.Failing
		ok, stopping := r.sendDue(work), r.stopping()
		if ok && !stopping && r.Failing != wasFailing {
			continue
		}
		ending := stopping || r.Failing
		if ok && !r.release(ending) {
			continue
		}
		r.mu.Lock()
		reload := r.reload && ok
		if done = ending || !reload; done {
			delete(r.runners, r.ID)
		}
		r.mu.Unlock()
		if reload {
			signal(r.sweepNow) // new deliveries were reported during the release: the endpoint is leased again, or must be
		}
	}
}

// pool returns the slots of the endpoint and how many it may have: failing endpoints have their own, so that attempts at them never
// occupy those of the others.
func (r *runner) pool() (*fair.Slots[uuid.UUID], int) {
	if r.Failing {
		return r.failing, perFailing
	}
	return r.healthy, perEndpoint
}

// sendDue makes the due attempts until there are none or the runner must stop. It requests a slot before it loads a delivery, so that
// what is loaded is sent at once. It returns when no attempt is in flight; ok is false if something failed that is not the
// receiver's fault.
func (r *runner) sendDue(work context.Context) (ok bool) {
	pool, limit := r.pool()
	ticker := time.NewTicker(searchEvery)
	defer ticker.Stop()
	search, final := true, false
	var granted <-chan struct{} // nil without a request
	var cancel func()
	for ok = true; ; {
		if search && !final && granted == nil && r.sending < limit && len(r.inFlight) < perRunner {
			granted, cancel = pool.Request(r.AccountID, r.sending)
			r.setWaiting(r.sending == 0 && !r.Failing)
		}
		if granted == nil && len(r.inFlight) == 0 {
			return ok
		}
		lost, draining := r.lost, r.draining
		if final {
			lost, draining = nil, nil
		}
		select {
		case <-granted:
			granted = nil
			r.setWaiting(false)
			var loaded bool
			search, final, loaded = r.fill(work, pool, limit)
			ok = ok && loaded
		case s := <-r.steps:
			ok = r.handle(s) && ok
			final = final || !ok
			r.Failing = r.Failing && !s.succeeded
		case <-r.wake:
			search = true
		case <-ticker.C:
			search = true
		case <-lost:
			final = true
		case <-draining:
			final = true
		}
		if final && granted != nil {
			cancel()
			granted = nil
			r.setWaiting(false)
		}
	}
}

// fill uses a slot and as many more as the endpoint may have for due deliveries. more is true if there may be others that are due,
// and final if the runner must load no more; ok is false if loading failed.
func (r *runner) fill(work context.Context, pool *fair.Slots[uuid.UUID], limit int) (more, final, ok bool) {
	taken := 1 + pool.TryAcquireSome(r.AccountID, limit-r.sending-1)
	used := 0
	defer func() { pool.ReleaseSome(r.AccountID, taken-used) }()
	loaded := r.load(taken)
	switch {
	case loaded.err != nil:
		return false, true, false
	case loaded.due.Endpoint == nil:
		return false, true, true
	case !r.Failing && loaded.due.Endpoint.FailingSince != nil:
		r.Failing = true // attempts at it use the slots of failing endpoints
		return false, true, true
	}
	for _, due := range loaded.due.Deliveries {
		used++
		r.inFlight[due.EventID] = true
		r.sending++
		go func() {
			ok, succeeded := r.attempt(work, pool, loaded, due)
			r.steps <- step{due.EventID, true, ok, succeeded}
		}()
	}
	return used == taken, r.Failing, true
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

// load reads the endpoint and at most n of its due deliveries that are not in flight.
func (r *runner) load(n int) loaded {
	r.mu.Lock()
	r.reload = false
	r.mu.Unlock()
	claim := Claim{WebhookID: r.ID, Limit: n}
	for id := range r.inFlight {
		claim.InFlight = append(claim.InFlight, id)
	}
	reply := make(chan loaded, 1)
	r.loads <- load{claim, reply}
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

// attempt sends an event, releases its slot and records the result.
func (r *runner) attempt(work context.Context, pool *fair.Slots[uuid.UUID], loaded loaded, due DueDelivery) (ok, succeeded bool) {
	attempt, ok := r.post(work, loaded, due)
	pool.Release(r.AccountID)
	r.steps <- step{id: due.EventID}
	if attempt == nil {
		return ok, false
	}
	written := make(chan bool, 1)
	r.results <- resultWrite{AttemptRecord{Endpoint: loaded.due.Endpoint, Delivery: due.Delivery, Attempt: *attempt}, written}
	return <-written, attempt.Outcome == Succeeded
}

// post makes the request. The result is nil if there was no attempt, or one that was canceled: the delivery stays due. With ok false
// something failed, or the dispatcher ends.
func (r *runner) post(work context.Context, loaded loaded, due DueDelivery) (result *Attempt, ok bool) {
	endpoint, now := loaded.due.Endpoint, r.Store.Now()
	if due.Event == nil {
		return &Attempt{Outcome: EventGone, EndedAt: now}, true
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
	sending, end := r.requests.begin(work, endpoint)
	defer end()
	if time.Since(loaded.due.ReadAt) > loadValid {
		return nil, true
	}
	r.metrics.observeFirstAttempt(endpoint, due, now)
	attempt := r.Client.Send(sending, Message{URL: endpoint.URL, ID: due.EventID.String(), Body: body, Secrets: secrets})
	switch {
	case work.Err() != nil:
		return nil, false
	case sending.Err() != nil && attempt.Outcome != Succeeded:
		return nil, true
	}
	r.metrics.attempts.WithLabelValues(string(attempt.Outcome)).Inc()
	return &attempt, true
}

// release releases the lease and reports true, unless deliveries are due and the runner must continue.
func (r *runner) release(always bool) bool {
	released := make(chan bool, 1)
	r.releases <- release{r.ID, always, released}
	return <-released
}
