package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/feed"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
)

// Each account has one connection for long lists and all together have a quarter, so that everything else is answered however
// many long lists are requested.
func TestListSemaphore_LeavesConnections(t *testing.T) {
	t.Parallel()
	for _, trial := range []struct{ accounts, reading int }{{accounts: 2, reading: 2}, {accounts: 10, reading: pgtest.Patient().MaxConnections / 4}} {
		t.Run(fmt.Sprintf("%d accounts", trial.accounts), func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			direct, store := pgtest.Open(t, url), pgtest.Open(t, url)
			release := lockTable(t, direct, "transfers")
			var lists errgroup.Group
			for range trial.accounts {
				owner := uuid.New()
				for range 2 * pgtest.Patient().MaxConnections {
					lists.Go(func() error {
						for _, err := range store.Intents.Transfers(t.Context(), owner, intents.TransferFilter{}) {
							return err
						}
						return nil
					})
				}
			}
			asynctest.Eventually(t, "long lists are being read", func() bool { return waiting(t, direct) >= trial.reading })
			for range 100 {
				if err := use(t.Context(), store); err != nil {
					t.Fatalf("beside long lists: %v", err)
				}
			}
			if found := waiting(t, direct); found > trial.reading {
				t.Errorf("%d connections read long lists, not %d", found, trial.reading)
			}
			release()
			if err := lists.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Long pages of the feed and of deliveries, and short ones that are searched for through many events, are long lists too: an
// account that reads many of them leaves connections, and slots of long lists, to all others.
func TestListSemaphore_EventsAndDeliveries(t *testing.T) {
	t.Parallel()
	cancelled, err := feed.ParseFilter("transfer.cancelled")
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]struct {
		table string
		page  func(*testing.T, *rooms.Rooms, *webhooks.Endpoint) error
	}{
		"long page": {"transfers", func(t *testing.T, store *rooms.Rooms, e *webhooks.Endpoint) error {
			t.Helper()
			_, err := store.Feed.EventPage(t.Context(), e.Owner(), 0, feed.Filter{}, 1000)
			return err
		}},
		"long search": {"transfers", func(t *testing.T, store *rooms.Rooms, e *webhooks.Endpoint) error {
			t.Helper()
			_, err := store.Feed.EventPage(t.Context(), e.Owner(), 0, cancelled, 10)
			return err
		}},
		"deliveries": {"deliveries", func(t *testing.T, store *rooms.Rooms, e *webhooks.Endpoint) error {
			t.Helper()
			_, _, err := store.Webhooks.Deliveries(t.Context(), e.Owner(), e.ID, webhooks.DeliveryQuery{Limit: 1000})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			direct, store := pgtest.Open(t, url), pgtest.Open(t, url)
			rules := pgtest.WebhookRules(t, make([]byte, 32), nil)
			greedy, _ := pgtest.InsertWebhook(t, direct, rules, pgtest.SignUp(t, direct, "ann@example.com"))
			other, _ := pgtest.InsertWebhook(t, direct, rules, pgtest.SignUp(t, direct, "bob@example.com"))
			pgtest.Exec(t, direct, `INSERT INTO feed (position, account_id, environment, type, occurred_at, data)
				SELECT 2 * n + (account_id = $1)::int, account_id, 'test', CASE n WHEN 2000 THEN 'transfer.cancelled' ELSE 'transfer.created' END, now(), '{}'
				FROM webhooks, generate_series(1, 2000) AS n`, greedy.AccountID)
			pgtest.Exec(t, direct, `UPDATE feed_state SET last_position = 5000`)
			release := lockTable(t, direct, read.table)
			var pages errgroup.Group
			for range 2 * pgtest.Patient().MaxConnections {
				pages.Go(func() error { return read.page(t, store, greedy) })
			}
			asynctest.Eventually(t, "a page is being read", func() bool { return waiting(t, direct) >= 1 })
			pages.Go(func() error { return read.page(t, store, other) })
			asynctest.Eventually(t, "another account's page is being read", func() bool { return waiting(t, direct) >= 2 })
			for range 100 {
				if err := use(t.Context(), store); err != nil {
					t.Fatalf("beside long pages: %v", err)
				}
			}
			if found := waiting(t, direct); found > 2 {
				t.Errorf("%d connections read long pages, not 2", found)
			}
			release()
			if err := pages.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A change check without a cursor waits for the semaphore before it queries Postgres, as the list after it does. A check with a
// cursor does not wait.
func TestListSemaphore_NewListWaits(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct, store := pgtest.Open(t, url), pgtest.Open(t, url)
	owner := uuid.New()
	held, err := store.Intents.CheckChanges(t.Context(), owner, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	release := lockTable(t, direct, "transfers")
	var list errgroup.Group
	list.Go(func() error {
		for _, err := range store.Intents.Transfers(t.Context(), owner, intents.TransferFilter{}) {
			return err
		}
		return nil
	})
	asynctest.Eventually(t, "a list is being read", func() bool { return waiting(t, direct) == 1 })
	if again, err := store.Intents.CheckChanges(t.Context(), owner, held.Cursor, time.Now()); err != nil || again.Changed {
		t.Errorf("to the holder of a list: %+v, %v", again, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := store.Intents.CheckChanges(ctx, owner, "", time.Now()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("to a reader whose turn has not come: %v", err)
	}
	release()
	if err := list.Wait(); err != nil {
		t.Error(err)
	}
}

// lockTable makes everyone who reads a table wait.
func lockTable(t *testing.T, store *rooms.Rooms, table string) (release func()) {
	t.Helper()
	tx := pgtest.Lock(t, store, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

// waiting counts the statements that wait for a lock.
func waiting(t *testing.T, store *rooms.Rooms) int {
	t.Helper()
	return pgtest.LookUp[int](t, store, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}
