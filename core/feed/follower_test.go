package feed_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// database has accounts that record intents.
type database struct {
	*testing.T
	store *rooms.Rooms
	known *registry.Snapshot
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	store := pgtest.New(t)
	return &database{T: t, store: store, known: pgtest.LoadRegistry(t, store)}
}

// account makes an account with an event.
func (d *database) account() feed.Owner {
	d.Helper()
	owner := pgtest.NewOwner(d.T, d.store)
	d.event(owner)
	return owner
}

func (d *database) event(owner feed.Owner) {
	d.Helper()
	pgtest.InsertTransfer(d.T, d.store, d.known, owner.AccountID, pgtest.TransferBody)
}

// follow runs rounds until nothing waits.
func (d *database) follow(f *feed.Follower) {
	d.Helper()
	for more := true; more; {
		var err error
		if more, err = f.Follow(d.Context()); err != nil {
			d.Fatal(err)
		}
	}
}

// now is the position that waits can begin at.
func (d *database) now(f *feed.Follower) int64 {
	d.Helper()
	position, err := f.Position(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	return position
}

// wait is what is told of who has had events after a position; it ends at once where nobody has.
func (d *database) wait(f *feed.Follower, after int64) feed.Notification {
	d.Helper()
	ended, end := context.WithCancel(d.Context())
	end()
	news, err := f.Wait(ended, after)
	if err != nil {
		d.Fatal(err)
	}
	return news
}

func TestFollower_Wait(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	one, two := d.account(), d.account()
	f := feed.NewFollower(d.store.Feed)
	before := d.now(f)
	if news := d.wait(f, before); len(news.Owners) > 0 || news.Position != before {
		t.Errorf("after everything that there was: %+v, want nobody and %d", news, before)
	}
	heard := make(chan feed.Notification, 1)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		news, err := f.Wait(t.Context(), before)
		if err != nil {
			t.Error(err)
		}
		heard <- news
	})
	d.event(two)
	d.event(two)
	d.follow(f)
	first := <-heard
	if !slices.Equal(first.Owners, []feed.Owner{two}) || first.Position <= before {
		t.Errorf("%+v, want %v once and a position after %d", first, two, before)
	}
	d.event(one)
	d.follow(f)
	if news := d.wait(f, first.Position); !slices.Equal(news.Owners, []feed.Owner{one}) {
		t.Errorf("after the first news: %v, want %v", news.Owners, one)
	}
	if news := d.wait(f, before); !slices.Equal(news.Owners, []feed.Owner{two, one}) {
		t.Errorf("after the beginning: %v, want each once", news.Owners)
	}
}

// A process hears of the events whose positions another one has given.
func TestFollower_OtherProcess(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	owner := d.account()
	gives, hears := feed.NewFollower(d.store.Feed), feed.NewFollower(d.store.Feed)
	before := d.now(hears)
	d.event(owner)
	d.follow(gives)
	d.follow(hears)
	if news := d.wait(hears, before); !slices.Equal(news.Owners, []feed.Owner{owner}) {
		t.Errorf("%v, want %v", news.Owners, owner)
	}
}

// What was committed before CatchUp is called has its position when it returns, also with concurrent calls.
func TestFollower_CatchUp(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	owner := d.account()
	f := feed.NewFollower(d.store.Feed)
	var calling sync.WaitGroup
	defer calling.Wait()
	for range 8 {
		calling.Go(func() {
			for range 20 {
				d.event(owner)
				committed := pgtest.LookUp[int](t, d.store, "SELECT count(*) FROM events")
				if err := f.CatchUp(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if given := pgtest.LookUp[int](t, d.store, "SELECT count(*) FROM feed"); given < committed {
					t.Errorf("%d of %d events have no position", committed-given, committed)
				}
			}
		})
	}
}

func TestFollower_CatchUpCanceled(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := feed.NewFollower(pgtest.New(t).Feed).CatchUp(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// A new follower does not know who had events before, and one remembers only the newest.
func TestFollower_Missed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.account()
	d.follow(feed.NewFollower(d.store.Feed))
	f := feed.NewFollower(d.store.Feed)
	now := d.now(f)
	if _, err := f.Wait(t.Context(), now-1); !errors.Is(err, feed.ErrMissed) {
		t.Errorf("before the start: %v, want %v", err, feed.ErrMissed)
	}
	pgtest.Exec(t, d.store, `INSERT INTO feed (position, account_id, environment, type, occurred_at, data)
		SELECT $1::bigint + n, gen_random_uuid(), 'test', 'webhook.disabled', now(), '{}' FROM generate_series(1, 10001) AS n`, now)
	pgtest.Exec(t, d.store, "UPDATE feed_state SET last_position = $1::bigint + 10001", now)
	d.follow(f)
	if _, err := f.Wait(t.Context(), now); !errors.Is(err, feed.ErrMissed) {
		t.Errorf("before the oldest that is remembered: %v, want %v", err, feed.ErrMissed)
	}
	if news := d.wait(f, now+1); len(news.Owners) != 10_000 {
		t.Errorf("%d owners, want all 10000 that are remembered", len(news.Owners))
	}
}

func TestFollower_Drain(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.account()
	f := feed.NewFollower(d.store.Feed)
	now := d.now(f)
	ended := make(chan error, 1)
	go func() {
		news, err := f.Wait(t.Context(), now)
		if err == nil && (len(news.Owners) > 0 || news.Position != now) {
			err = errors.New("the wait was told of news")
		}
		ended <- err
	}()
	f.Drain() // before or after the wait has begun: both are right
	if err := <-ended; err != nil && !errors.Is(err, feed.ErrDraining) {
		t.Error(err)
	}
	if _, err := f.Wait(t.Context(), now); !errors.Is(err, feed.ErrDraining) {
		t.Errorf("after Drain: %v, want %v", err, feed.ErrDraining)
	}
}
