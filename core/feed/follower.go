// Package feed is the feed of events: what an event of an account is for its clients, in which order events are handed out, and who is
// told of new ones. A follower in each process assigns positions to new events and notifies those who wait.
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
)

// Interval is the time between two calls of Follow; on average an event waits half of it for its position. A round costs Postgres
// as much as the positions of 200 events, so fewer rounds make each event cheaper.
const Interval = 100 * time.Millisecond

// bufferSize is how many of the newest events are buffered for Wait.
const bufferSize = 10_000

var (
	// ErrMissed is returned if the buffer does not reach back to a position.
	ErrMissed = errors.New("the position is too old to tell who has had events since")
	// ErrDraining is returned for a Wait that begins after Drain.
	ErrDraining = errors.New("shutting down")
)

// Follower follows the feed in one process. It is safe for concurrent use; any number of processes may have a follower each.
type Follower struct {
	store *Store
	// roundLock is a semaphore of one: its holder runs a round or reads new events.
	roundLock chan struct{}
	// runs counts the runs that have begun, and caughtUp is the newest run that found every waiting event. roundLock guards caughtUp.
	runs     atomic.Uint64
	caughtUp uint64
	// behind means that the last round was full. roundLock guards it.
	behind bool

	mu sync.Mutex
	// following is true once from and seen are set.
	following bool
	// entries are the events above from and up to seen, oldest first.
	entries    []Entry
	from, seen int64
	// news is closed and replaced when there are new entries.
	news     chan struct{}
	draining chan struct{}
	drain    sync.Once
}

// NewFollower returns a follower, which Follow advances.
func NewFollower(store *Store) *Follower {
	return &Follower{store: store, roundLock: make(chan struct{}, 1), news: make(chan struct{}), draining: make(chan struct{})}
}

// Follow assigns positions to the waiting events, unless another process does so, and reads the new events of all processes. Call
// it every Interval, and again immediately if more is true.
func (f *Follower) Follow(ctx context.Context) (more bool, err error) {
	select {
	case f.roundLock <- struct{}{}:
		defer func() { <-f.roundLock }()
		return f.follow(ctx, false)
	default:
		return false, nil // a concurrent call runs the round
	}
}

// CatchUp returns once every event that was committed before the call has its position. Concurrent calls share their rounds.
func (f *Follower) CatchUp(ctx context.Context) error {
	before := f.runs.Load()
	select {
	case f.roundLock <- struct{}{}:
		defer func() { <-f.roundLock }()
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
	run := f.runs.Add(1)
	status, err := f.store.Status(ctx)
	if err != nil {
		return false, err
	}
	last := f.startAt(status.LastPosition)
	round := Round{}
	if status.Unread {
		if round, err = f.store.AssignPositions(ctx, wait, f.behind); err != nil {
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

// startAt sets the start position on the first call, and returns the newest known position.
func (f *Follower) startAt(position int64) (last int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.following {
		f.following, f.from, f.seen = true, position, position
	}
	return f.seen
}

// readNews reads the events above the newest known position and wakes the waiters.
func (f *Follower) readNews(ctx context.Context, last int64) error {
	for {
		entries, err := f.store.Entries(ctx, last, bufferSize)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return nil
		}
		f.buffer(entries)
		if len(entries) < bufferSize {
			return nil
		}
		last = entries[len(entries)-1].Position
	}
}

func (f *Follower) buffer(entries []Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, entries...)
	f.seen = entries[len(entries)-1].Position
	if more := len(f.entries) - bufferSize; more > 0 {
		f.from = f.entries[more-1].Position
		f.entries = slices.Delete(f.entries, 0, more)
	}
	close(f.news)
	f.news = make(chan struct{})
}

// Notification lists the accounts with events since a position.
type Notification struct {
	// Position is the newest position included, to be passed to the next Wait.
	Position int64
	// Owners has no duplicates. It is empty if the wait ended without events.
	Owners []Owner
}

// Wait returns the owners with events above a position; it blocks until there is one. It returns no owners when ctx ends or Drain
// is called, ErrMissed if the buffer does not reach back to the position, and ErrDraining after Drain.
func (f *Follower) Wait(ctx context.Context, after int64) (Notification, error) {
	select {
	case <-f.draining:
		return Notification{}, ErrDraining
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

// since returns the owners with events above a position, and a channel that is closed at the next new event.
func (f *Follower) since(after int64) (Notification, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.following && after < f.from {
		return Notification{}, nil, ErrMissed
	}
	first, _ := slices.BinarySearchFunc(f.entries, after, func(e Entry, after int64) int { return cmp.Compare(e.Position, after+1) })
	news := Notification{Position: max(after, f.seen)}
	known := make(map[Owner]bool)
	for _, e := range f.entries[first:] {
		if !known[e.Owner] {
			known[e.Owner] = true
			news.Owners = append(news.Owners, e.Owner)
		}
	}
	return news, f.news, nil
}

// Position returns the newest known position, at which Wait can begin.
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
