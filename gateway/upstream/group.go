package upstream

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/wire"
)

// maxPermits is how many batches to a core may be without a response. With one, core and the disk would be idle in turn; more only make the
// batches smaller.
const maxPermits = 3

// maxOfAccount is how many requests of one account are in a batch while more wait than it has room for, so that the burst of one account holds
// others up for a batch or two and not for all of its own.
const maxOfAccount = wire.MaxBatchRequests / 4

// group sends the requests to one core that wait at the same time as one batch, without a timer or a goroutine (flat combining). A request
// that gets a permit is a leader: it sends all that wait, and reads responses until its own has arrived. A lone request is sent as if there
// were no group. With its response the leader passes its permit to the first request that waits meanwhile, and the rest of the reading to a
// request of its batch.
type group struct {
	client *Client
	core   *cores.Core

	mu      sync.Mutex
	waiting []*member
	permits int
	// ofAccount and others are the memory of giveShares.
	ofAccount map[string]int
	others    []*member
}

// member is one request of a group, pooled because of its channel.
type member struct {
	request  *Request
	response *Response
	span     trace.Span
	options  attemptOptions
	// buffer has the encoded request.
	buffer *[]byte
	// isLeader is set once the member has got a permit, sent once a leader has taken it for its batch. The group's mutex guards both.
	isLeader, sent bool
	// permit is the group whose permit a request that was sent alone still has, else nil.
	permit *group
	// batch is the one that a member notified by read is to read.
	batch *batch
	// got is the result of a member notified by done.
	got attempt
	// notified has room for all notifications of a member.
	notified chan notification
}

// notification is what a waiting member is to do next.
type notification int

const (
	// lead: the member has got a permit.
	lead notification = iota
	// read: the rest of the batch is the member's to read.
	read
	// done: the response, or the error, has arrived.
	done
)

var members = sync.Pool{New: func() any { return &member{notified: make(chan notification, 3)} }}

// mayBatch reports whether the request may be sent to the core with others. A request for which a lost core is the last resort is sent alone.
func (r *Request) mayBatch(core *cores.Core, options attemptOptions) bool {
	return r.Batch && !options.alone && core.Batches() && !core.Lost() && len(r.Client.Body()) <= wire.MaxBatchedBytes
}

// do is Client.attempt for a request that may be sent with others.
func (g *group) do(r *Request, response *Response, span trace.Span, buffer *[]byte, options attemptOptions) attempt {
	*buffer = appendMessage((*buffer)[:0], r, span)
	m, _ := members.Get().(*member)
	m.request, m.response, m.span, m.buffer, m.options = r, response, span, buffer, options
	got := g.run(m)
	*m = member{notified: m.notified}
	members.Put(m)
	return got
}

func (g *group) run(m *member) attempt {
	g.core.Begin()
	defer g.core.End()
	isLeader := g.join(m)
	for {
		if isLeader {
			// Other runnable goroutines run first, so that their requests join this batch.
			runtime.Gosched()
			runtime.Gosched()
			switch batch := g.take(m); len(batch) {
			case 0: // another leader has taken the member, or it has its result
			case 1:
				return g.runAlone(m)
			default:
				return g.client.doBatch(g, batch)
			}
		}
		switch <-m.notified {
		case lead:
			isLeader = true
		case read:
			return m.batch.read(m)
		case done:
			return m.got
		}
	}
}

// runAlone sends a request for which no others have waited.
func (g *group) runAlone(m *member) attempt {
	*m.buffer = g.client.appendRequest((*m.buffer)[:0], m.request, g.core.URL.Host, m.span)
	m.permit = g
	defer m.releasePermit()
	options := m.options
	options.waiter = m
	return g.client.attempt(g.core, m.request, *m.buffer, options, m.response)
}

// tick implements waiter for a request that was sent alone: others do not wait for one that takes longer than checkInterval.
func (m *member) tick() error {
	m.releasePermit()
	return m.request.tick()
}

func (m *member) releasePermit() {
	if m.permit != nil {
		m.permit.passPermit()
		m.permit = nil
	}
}

// join gives the member a permit, and reports whether there was one. Otherwise the member waits for its notification.
func (g *group) join(m *member) (isLeader bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.core.Lost() { // since it was picked
		m.giveBack()
		return false
	}
	if g.permits < maxPermits {
		g.permits++
		m.isLeader = true
		return true
	}
	g.waiting = append(g.waiting, m)
	return false
}

// take returns the requests for the leader's batch, its own first; none if the leader was taken by another leader meanwhile, or
// is given back; it passes its permit on then.
func (g *group) take(leader *member) (batch []*member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !leader.sent && g.core.Lost() {
		g.giveBackLocked()
		if !leader.sent {
			leader.giveBack()
		}
	}
	if leader.sent {
		g.passPermitLocked()
		return nil
	}
	leader.sent = true
	if n := slices.Index(g.waiting, leader); n >= 0 {
		g.waiting = slices.Delete(g.waiting, n, n+1)
	}
	g.giveShares(wire.MaxBatchRequests - 1)
	batch = append(make([]*member, 0, min(1+len(g.waiting), wire.MaxBatchRequests)), leader)
	now := time.Now()
	if leader.isUrgent(now) {
		return batch
	}
	length, left := wire.FrameHeadBytes+len(*leader.buffer), g.waiting[:0]
	for n, m := range g.waiting {
		if length += wire.FrameHeadBytes + len(*m.buffer); len(batch) == wire.MaxBatchRequests || length > wire.MaxBatchBytes {
			left = append(left, g.waiting[n:]...)
			break
		}
		switch {
		case !now.Before(m.options.deadline):
			m.sent = true
			m.finish(attempt{err: errNoTime}, now)
		case m.isUrgent(now):
			left = append(left, m)
		default:
			m.sent = true
			batch = append(batch, m)
		}
	}
	clear(g.waiting[len(left):])
	g.waiting = left
	return batch
}

// isUrgent reports whether so little of the request's time is left that it is sent alone: the earliest deadline of a batch is that of its sending.
// The others have the time for a dial, or half of theirs.
func (m *member) isUrgent(now time.Time) bool {
	left := m.options.deadline.Sub(now)
	return left < dialTimeout+connWait && left < m.options.deadline.Sub(m.options.began)/2
}

// giveBack ends the requests that wait, so that each goes to another core.
func (g *group) giveBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.giveBackLocked()
}

func (g *group) giveBackLocked() {
	for _, m := range g.waiting {
		m.giveBack()
	}
	clear(g.waiting)
	g.waiting = g.waiting[:0]
}

func (m *member) giveBack() {
	m.sent = true
	m.finish(attempt{err: errGivenBack}, time.Time{})
}

// giveShares puts those first that wait for a batch with this room, if they are more: maxOfAccount of each account, then the others.
func (g *group) giveShares(room int) {
	if len(g.waiting) <= room {
		return
	}
	clear(g.ofAccount)
	g.others = g.others[:0]
	first, seen := 0, 0
	for ; first < room && seen < len(g.waiting); seen++ {
		m := g.waiting[seen]
		if g.ofAccount[m.request.Identity.AccountID]++; g.ofAccount[m.request.Identity.AccountID] > maxOfAccount {
			g.others = append(g.others, m)
			continue
		}
		g.waiting[first] = m
		first++
	}
	copy(g.waiting[first:seen], g.others)
	clear(g.others)
}

// passPermit passes a permit on to the first request that waits and has none, or frees it.
func (g *group) passPermit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passPermitLocked()
}

func (g *group) passPermitLocked() {
	for _, m := range g.waiting {
		if !m.isLeader {
			m.isLeader = true
			m.notified <- lead // before any other notification, because this goroutine holds the mutex
			return
		}
	}
	g.permits--
}

// finish notifies a waiting member of its result. The member may not be used any more.
func (m *member) finish(got attempt, now time.Time) {
	if m.got = got; got.err == nil && got.by == byCore && !got.batch {
		m.response.Ended = now
	}
	m.notified <- done
}
