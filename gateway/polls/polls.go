// Package polls holds the long polls of the event feed: how many may wait, and which of them new events of an account wake.
//
// Core answers every request for events at once and holds none open. The gateway parks the requests that wait, and one long poll
// at core, for all of them together, reports which accounts have new events. A wake-up only means that the request to core is
// worth repeating; core's response has the events.
package polls

import (
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/gateway/control"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
)

const (
	// MaxPerKey bounds the polls of one key at this replica.
	MaxPerKey = 2
	// MaxPerAccount bounds those of one account.
	MaxPerAccount = 8
	// maxQuestions bounds the woken polls with a request in flight at core, so that waking all of them, as after a gap in the
	// feed, leaves connections to other requests.
	maxQuestions = 32
)

var (
	// ErrTooManyOfKey means that the key has MaxPerKey polls.
	ErrTooManyOfKey = errors.New("the key has as many long polls as it may")
	// ErrTooManyOfAccount means that the account has MaxPerAccount polls.
	ErrTooManyOfAccount = errors.New("the account has as many long polls as it may")
	// ErrTooMany means that the replica has Options.Max polls.
	ErrTooMany = errors.New("the gateway has GATEWAY_MAX_POLLS long polls")
)

// Options are the settings; all must be set.
type Options struct {
	Core *control.Client
	// Max bounds the polls of all accounts together.
	Max     int
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Polls are the long polls of one replica. It is safe for concurrent use. Polls are woken only while Run runs.
type Polls struct {
	core      *control.Client
	max       int
	questions chan struct{}
	draining  chan struct{}
	// first receives when the number of polls rises from zero.
	first chan struct{}

	mu sync.Mutex
	// byAccount holds the polls by account; count is their number.
	byAccount map[string][]*Poll
	count     int
	drained   bool

	logs    telemetry.Sampler
	log     *slog.Logger
	metrics metrics
}

// New returns the polls of a replica, initially none.
func New(o Options) *Polls {
	p := &Polls{
		core:      o.Core,
		max:       o.Max,
		questions: make(chan struct{}, maxQuestions),
		draining:  make(chan struct{}),
		first:     make(chan struct{}, 1),
		byAccount: map[string][]*Poll{},
		logs:      telemetry.Sampler{Every: logEvery},
		log:       o.Log,
	}
	p.metrics = newMetrics(o.Metrics, p)
	return p
}

// Poll is one long poll, from before its first request to core until its response.
type Poll struct {
	polls     *Polls
	keyID     string
	accountID string
	env       network.Environment
	news      chan struct{}
}

// Acquire counts one more poll and subscribes it to new events of the account in the environment. It must precede the first
// request to core, so that no event after that response is missed. The errors are ErrTooManyOfKey, ErrTooManyOfAccount and
// ErrTooMany. Release must be called.
func (p *Polls) Acquire(keyID, accountID string, env network.Environment) (*Poll, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	polls, ofKey := p.byAccount[accountID], 0
	for _, other := range polls { // all polls of a key have the same account
		if other.keyID == keyID {
			ofKey++
		}
	}
	switch {
	case ofKey >= MaxPerKey:
		return nil, ErrTooManyOfKey
	case len(polls) >= MaxPerAccount:
		return nil, ErrTooManyOfAccount
	case p.count >= p.max:
		return nil, ErrTooMany
	}
	poll := &Poll{polls: p, keyID: keyID, accountID: accountID, env: env, news: make(chan struct{}, 1)}
	p.byAccount[accountID] = append(polls, poll)
	if p.count++; p.count == 1 {
		select {
		case p.first <- struct{}{}:
		default:
		}
	}
	return poll, nil
}

// Release ends the poll.
func (w *Poll) Release() {
	p := w.polls
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := slices.DeleteFunc(p.byAccount[w.accountID], func(other *Poll) bool { return other == w })
	if len(rest) == 0 {
		delete(p.byAccount, w.accountID) // a map of all accounts would grow without bound
	} else {
		p.byAccount[w.accountID] = rest
	}
	p.count--
}

// News receives once the account has, or may have, new events since the last receive.
func (w *Poll) News() <-chan struct{} { return w.news }

// Questions is a semaphore: a woken poll sends to it before its next request to core and receives from it after.
func (p *Polls) Questions() chan struct{} { return p.questions }

// Draining is closed when polls must be answered at once.
func (p *Polls) Draining() <-chan struct{} { return p.draining }

// Drain closes Draining.
func (p *Polls) Drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.drained {
		p.drained = true
		close(p.draining)
	}
}

// wake notifies the account's polls in the environment of new events.
func (p *Polls) wake(accountID string, env network.Environment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, poll := range p.byAccount[accountID] {
		if poll.env == env {
			poll.wake()
		}
	}
}

// wakeAll notifies every poll, because there may be new events.
func (p *Polls) wakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, polls := range p.byAccount {
		for _, poll := range polls {
			poll.wake()
		}
	}
}

func (w *Poll) wake() {
	select {
	case w.news <- struct{}{}:
	default: // already notified
	}
}

func (p *Polls) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}
