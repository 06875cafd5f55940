// Package feed runs the feed of events: it assigns positions to new events and reports to waiting requests which accounts have
// new events. core/postgres owns the content and the order of the feed.
package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"intents.internal/core/event"
	"intents.internal/core/postgres"
)

// Interval is the time between two calls of Follow, and so about twice as long as an event waits for its position. A round costs Postgres
// as much as the positions of 200 events, so fewer rounds make each event cheaper.
const Interval = 100 * time.Millisecond

// remembered is how many of the newest events are kept for Wait.
const remembered = 10_000

var (
	// ErrMissed is returned if it is unknown which accounts have had events since a position.
	ErrMissed = errors.New("the position is too old to tell who has had events since")
	// ErrDraining is returned to calls after Drain.
	ErrDraining = errors.New("shutting down")
)

// Follower follows the feed of one process. It is safe for concurrent use; any number of processes may have one each.
type Follower struct {
	store *postgres.Store
	// turn is held while a round runs or new events are read.
	turn chan struct{}
	// begun counts the runs that have begun, and caughtUp is the newest of them that has found everything. Who has the turn may use
	// the latter.
	begun    atomic.Uint64
	caughtUp uint64
	// behind means that the last round was full. Who has the turn may use it.
	behind bool

	mu sync.Mutex
	// following is true once from and seen are set.
	following bool
	// entries are the events above from and up to seen, oldest first.
	entries    []postgres.FeedEntry
	from, seen int64
	// news is closed and replaced when there are new entries.
	news     chan struct{}
	draining chan struct{}
	drain    sync.Once
}

// New makes a follower. Follow moves it.
func New(store *postgres.Store) *Follower {
	return &Follower{store: store, turn: make(chan struct{}, 1), news: make(chan struct{}), draining: make(chan struct{})}
}

// Follow assigns positions to the waiting events, unless another process does so, and reads the new events of all processes. Call
// it at each Interval, and again at once if more wait.
func (f *Follower) Follow(ctx context.Context) (more bool, err error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
		return f.follow(ctx, false)
	default:
		return false, nil // a request catches up
	}
}

// CatchUp returns once every event that was committed before the call has its position. Calls at the same time share their rounds.
func (f *Follower) CatchUp(ctx context.Context) error {
	before := f.begun.Load()
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return fmt.Errorf("catch up with the events: %w", ctx.Err())
	}
	for more := f.caughtUp <= before; more; {
		var err error
		if more, err = f.follow(ctx, true); err != nil {
			return err
		}
	}
	return nil
}

// follow runs a round if an event waits, and then reads the new events.
func (f *Follower) follow(ctx context.Context, wait bool) (more bool, err error) {
	run := f.begun.Add(1)
	status, err := f.store.FeedStatus(ctx)
	if err != nil {
		return false, err
	}
	last := f.startAt(status.LastPosition)
	round := postgres.FeedRound{}
	if status.Unread {
		if round, err = f.store.GivePositions(ctx, wait, f.behind); err != nil {
			return false, err
		}
		f.behind = round.More
	}
	if !round.More && !round.Skipped {
		f.caughtUp = run
	}
	if round.Events > 0 || status.LastPosition > last {
		err = f.readNews(ctx, last)
	}
	return round.More, err
}

// startAt begins with what comes after a position, the first time, and returns the newest position that is known.
func (f *Follower) startAt(position int64) (last int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.following {
		f.following, f.from, f.seen = true, position, position
	}
	return f.seen
}

// readNews reads the events above the newest known position and wakes the callers of Wait.
func (f *Follower) readNews(ctx context.Context, last int64) error {
	for {
		entries, err := f.store.FeedEntries(ctx, last, remembered)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return nil
		}
		f.remember(entries)
		if len(entries) < remembered {
			return nil
		}
		last = entries[len(entries)-1].Position
	}
}

func (f *Follower) remember(entries []postgres.FeedEntry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, entries...)
	f.seen = entries[len(entries)-1].Position
	if more := len(f.entries) - remembered; more > 0 {
		f.from = f.entries[more-1].Position
		f.entries = slices.Delete(f.entries, 0, more)
	}
	close(f.news)
	f.news = make(chan struct{})
}

// News are the accounts that have had events since a position.
type News struct {
	// Position is the newest that the news are of, to wait with next.
	Position int64
	// Owners are each there once. None have had events if the wait has ended.
	Owners []event.Owner
}

// Wait returns the owners of events above a position, at once if there are any and otherwise at the next event. It returns no
// owners when ctx ends or Drain is called, ErrMissed if they are unknown, and ErrDraining after Drain.
func (f *Follower) Wait(ctx context.Context, after int64) (News, error) {
	select {
	case <-f.draining:
		return News{}, ErrDraining
	default:
	}
	for {
		news, changed, err := f.since(after)
		if err != nil || len(news.Owners) > 0 {
			return news, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return news, nil
		case <-f.draining:
			return news, nil
		}
	}
}

// since returns who has had events above a position, and what is closed when somebody else has.
func (f *Follower) since(after int64) (News, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.following && after < f.from {
		return News{}, nil, ErrMissed
	}
	first, _ := slices.BinarySearchFunc(f.entries, after, func(e postgres.FeedEntry, after int64) int { return cmp.Compare(e.Position, after+1) })
	news := News{Position: max(after, f.seen)}
	known := make(map[event.Owner]bool)
	for _, e := range f.entries[first:] {
		if !known[e.Owner] {
			known[e.Owner] = true
			news.Owners = append(news.Owners, e.Owner)
		}
	}
	return news, f.news, nil
}

// Position is the newest position that is known, at which Wait can begin.
func (f *Follower) Position(ctx context.Context) (int64, error) {
	f.mu.Lock()
	position, following := f.seen, f.following
	f.mu.Unlock()
	if following {
		return position, nil
	}
	if err := f.CatchUp(ctx); err != nil {
		return 0, err
	}
	return f.Position(ctx)
}

// Drain ends all waits.
func (f *Follower) Drain() { f.drain.Do(func() { close(f.draining) }) }
