// Package polls holds the long polls of the event feed: how many may wait, and which of them an account's news wakes.
//
// Core answers every question for events at once and holds nothing. The gateway keeps the requests that wait, and learns from
// one long poll at core, for all of them together, which accounts have new events. A wake-up only says that a question is
// worth asking again; what there is to read is core's answer.
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
	// maxQuestions bounds the polls that ask core again at once, so that news for all of them, as after a gap in the feed, do
	// not take the connections to core from other requests.
	maxQuestions = 32
)

var (
	// ErrTooManyOfKey says that the key has MaxPerKey polls.
	ErrTooManyOfKey = errors.New("the key has as many long polls as it may")
	// ErrTooManyOfAccount says that the account has MaxPerAccount polls.
	ErrTooManyOfAccount = errors.New("the account has as many long polls as it may")
	// ErrTooMany says that the replica has as many polls as Options.Max.
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
	// first receives when there is a poll after there was none.
	first chan struct{}

	mu sync.Mutex
	// byAccount has the polls of each account that has any; count is their number.
	byAccount map[string][]*Poll
	count     int
	drained   bool

	logs    telemetry.Sampler
	log     *slog.Logger
	metrics metrics
}

// New makes the polls of a replica, none at first.
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

// Poll is one long poll, from before its first question until its answer.
type Poll struct {
	polls     *Polls
	keyID     string
	accountID string
	env       network.Environment
	news      chan struct{}
}

// Acquire counts one more poll and registers it for news of the account in the environment. It must precede the first
// question: what happens after that question was answered is news. The errors are ErrTooManyOfKey, ErrTooManyOfAccount and
// ErrTooMany. Release must be called.
func (p *Polls) Acquire(keyID, accountID string, env network.Environment) (*Poll, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	polls, ofKey := p.byAccount[accountID], 0
	for _, other := range polls { // a key belongs to one account
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

// News receives once the account has, or may have, events that came after the last receive.
func (w *Poll) News() <-chan struct{} { return w.news }

// Questions is a semaphore: a poll that was woken sends before it asks core again and receives after.
func (p *Polls) Questions() chan struct{} { return p.questions }

// Draining is closed when polls are to be answered at once.
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

// wake tells the account's polls in the environment that there is news.
func (p *Polls) wake(accountID string, env network.Environment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, poll := range p.byAccount[accountID] {
		if poll.env == env {
			poll.wake()
		}
	}
}

// wakeAll tells every poll that there may be news.
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
	default: // it has not been received since the last
	}
}

func (p *Polls) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}
