package upstream

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"intents.internal/pkg/wire"
)

// maxLanes is how many batches to a core may be without a response. With one, core and the disk would be idle in turn; more only make the
// batches smaller.
const maxLanes = 3

// maxOfAccount is how many requests of one account are in a batch while more wait than it has room for, so that the burst of one account holds
// others up for a batch or two and not for all of its own.
const maxOfAccount = wire.MaxBatchRequests / 4

// group sends the requests to one core that wait at the same time as one batch, without a timer or a goroutine (flat combining). A request
// that finds a lane idle leads: it sends all that wait, and reads responses until its own has arrived. A lone request is sent as if there
// were no group. With its response the leader hands its lane to the first request that waits meanwhile, and the rest of the reading to a
// request of its batch.
type group struct {
	client *Client
	core   *Core

	mu      sync.Mutex
	waiting []*member
	lanes   int
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
	// leads is set once the member was handed a lane, sent once a leader has taken it for its batch. The group's mutex guards both.
	leads, sent bool
	// lane is the group whose lane a request that was sent alone still has, else nil.
	lane *group
	// batch is the one that the member is told to read.
	batch *batch
	// err is the result of a member that is told so.
	err error
	// told has room for all that a member is told.
	told chan news
}

// news is what a waiting member is told.
type news int

const (
	// lead: a lane is the member's.
	lead news = iota
	// read: the rest of the batch is the member's to read.
	read
	// done: the response, or the error, has arrived.
	done
)

var members = sync.Pool{New: func() any { return &member{told: make(chan news, 3)} }}

// mayBatch reports whether the request may be sent to the core with others.
func (r *Request) mayBatch(core *Core, options attemptOptions) bool {
	return r.Batch && !options.newConn && core.Batches() && len(r.Client.Body()) <= wire.MaxBatchedBytes
}

// do is Client.attempt for a request that may be sent with others.
func (g *group) do(r *Request, response *Response, span trace.Span, buffer *[]byte, options attemptOptions) error {
	*buffer = appendMessage((*buffer)[:0], r, span)
	m, _ := members.Get().(*member)
	m.request, m.response, m.span, m.buffer, m.options = r, response, span, buffer, options
	err := g.run(m)
	*m = member{told: m.told}
	members.Put(m)
	return err
}

func (g *group) run(m *member) error {
	g.core.Begin()
	leads := g.join(m)
	for {
		if leads {
			// Other runnable goroutines run first, so that their requests join this batch.
			runtime.Gosched()
			runtime.Gosched()
			batch, ok := g.take(m)
			switch {
			case !ok: // another leader has taken the member
			case len(batch) == 1:
				g.core.End()
				return g.runAlone(m)
			default:
				err := g.client.doBatch(g, batch)
				g.core.End()
				return err
			}
		}
		switch <-m.told {
		case lead:
			leads = true
		case read:
			err := m.batch.read(m)
			g.core.End()
			return err
		case done:
			g.core.End()
			return m.err
		}
	}
}

// runAlone sends a request for which no others have waited.
func (g *group) runAlone(m *member) error {
	*m.buffer = g.client.appendRequest((*m.buffer)[:0], m.request, g.core.URL.Host, m.span)
	m.lane = g
	defer m.leaveLane()
	options := m.options
	options.peer = m
	return g.client.attempt(g.core, m.request, *m.buffer, options, m.response)
}

// Disconnected implements Peer for a request that was sent alone: others do not wait for one that takes longer than checkInterval.
func (m *member) Disconnected() bool {
	m.leaveLane()
	return m.options.peer != nil && m.options.peer.Disconnected()
}

func (m *member) leaveLane() {
	if m.lane != nil {
		m.lane.handOn()
		m.lane = nil
	}
}

// join reports whether the member leads. Otherwise it waits until it is told.
func (g *group) join(m *member) (leads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lanes < maxLanes {
		g.lanes++
		m.leads = true
		return true
	}
	g.waiting = append(g.waiting, m)
	return false
}

// take returns the requests for the leader's batch, its own first. If another leader has taken the leader meanwhile, it hands the lane on.
func (g *group) take(leader *member) (batch []*member, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if leader.sent {
		g.handOnLocked()
		return nil, false
	}
	leader.sent = true
	if n := slices.Index(g.waiting, leader); n >= 0 {
		g.waiting = slices.Delete(g.waiting, n, n+1)
	}
	g.giveShares(wire.MaxBatchRequests - 1)
	batch = append(make([]*member, 0, min(1+len(g.waiting), wire.MaxBatchRequests)), leader)
	length, now, n := wire.FrameHeadBytes+len(*leader.buffer), time.Now(), 0
	if !now.Before(leader.options.deadline) {
		return batch, true // alone, because the earliest deadline of a batch is that of its sending
	}
	for ; n < len(g.waiting) && len(batch) < wire.MaxBatchRequests; n++ {
		m := g.waiting[n]
		if length += wire.FrameHeadBytes + len(*m.buffer); length > wire.MaxBatchBytes {
			break
		}
		m.sent = true
		if !now.Before(m.options.deadline) {
			m.finish(errNoTime, now)
			continue
		}
		batch = append(batch, m)
	}
	g.waiting = slices.Delete(g.waiting, 0, n)
	return batch, true
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

// handOn passes a lane on to the first request that waits and leads none, or makes it idle.
func (g *group) handOn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handOnLocked()
}

func (g *group) handOnLocked() {
	for _, m := range g.waiting {
		if !m.leads {
			m.leads = true
			m.told <- lead // before anything else that it is told, because this goroutine holds the mutex
			return
		}
	}
	g.lanes--
}

// finish tells a waiting member its result. The member may not be used any more.
func (m *member) finish(err error, now time.Time) {
	if m.err = err; err == nil {
		m.response.Ended = now
	}
	m.told <- done
}
