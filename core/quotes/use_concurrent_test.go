package quotes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// Two cores with production's time limits make one intent of a quote, however many ask for it at once. A use that waits too long for the lock is
// refused as busy, and asked again.
func TestStore_Use_Concurrent(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	cores := [2]*rooms.Rooms{pgtest.OpenWith(t, url, postgres.Options{}), pgtest.OpenWith(t, url, postgres.Options{})}
	watcher := pgtest.Open(t, url)
	known, owner := pgtest.LoadRegistry(t, watcher), uuid.New()
	for range 8 {
		q := pgtest.InsertQuote(t, watcher, known, owner)
		var uses sync.WaitGroup
		var made [16]*transfer.Intent
		var outcomes [16]error
		for n := range outcomes {
			made[n] = pgtest.NewQuotedIntent(t, known, q)
			uses.Go(func() {
				use := func() bool {
					outcomes[n] = cores[n%2].Quotes.Use(t.Context(), access.OfOperator, made[n], "")
					return postgres.Busy(outcomes[n])
				}
				for use() {
				}
			})
		}
		uses.Wait()
		winner := pgtest.LookUp[uuid.UUID](t, watcher, "SELECT id FROM transfers WHERE quote_id = $1", q.ID)
		won := 0
		for n, err := range outcomes {
			used, lost := errors.AsType[*quotes.UsedError](err)
			switch {
			case err == nil && made[n].ID == winner:
				won++
			case !lost || used.TransferID != winner:
				t.Errorf("use %d: %v, and %s was made", n, err, winner)
			}
		}
		if n := pgtest.LookUp[int](t, watcher, "SELECT count(*) FROM transfers WHERE quote_id = $1", q.ID); won != 1 || n != 1 {
			t.Errorf("%d uses won, %d intents", won, n)
		}
	}
}

// beginUse uses a quote until its COMMIT waits.
func beginUse(t *testing.T, direct, core *rooms.Rooms, known *registry.Snapshot, q quote.Quote) (intent *transfer.Intent, block *pgtest.CommitBlock, ended <-chan error) {
	t.Helper()
	intent = pgtest.NewQuotedIntent(t, known, q)
	block = pgtest.BlockCommits(t, direct, "events")
	outcome := make(chan error, 1)
	go func() {
		outcome <- core.Quotes.Use(context.WithoutCancel(t.Context()), access.OfOperator, intent, "")
	}()
	block.Await(t, 1)
	return intent, block, outcome
}

// A backend that dies before its COMMIT ends leaves neither an intent nor a used quote.
func TestStore_Use_BackendKilled(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct, core := pgtest.Open(t, url), pgtest.Open(t, url)
	known, owner := pgtest.LoadRegistry(t, direct), uuid.New()
	q := pgtest.InsertQuote(t, direct, known, owner)
	_, block, ended := beginUse(t, direct, core, known, q)
	pgtest.Exec(t, direct, `SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
		WHERE l.locktype = 'advisory' AND NOT granted AND d.datname = current_database()`)
	if err := <-ended; !postgres.IsOutcomeUnknown(err) {
		t.Errorf("a lost connection says %v", err)
	}
	block.Release(t)
	if n := pgtest.LookUp[int](t, direct, `SELECT (SELECT count(*) FROM transfers) + (SELECT count(*) FROM events)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if err := core.Quotes.Use(t.Context(), access.OfOperator, pgtest.NewQuotedIntent(t, known, q), ""); err != nil {
		t.Errorf("the next use: %v", err)
	}
}

// An answer to COMMIT that is lost leaves one intent, which the next use names.
func TestStore_Use_OutcomeUnknown(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct, gate := pgtest.Open(t, url), pgtest.NewGate(t, url)
	core := pgtest.Open(t, gate.URL)
	known, owner := pgtest.LoadRegistry(t, direct), uuid.New()
	q := pgtest.InsertQuote(t, direct, known, owner)
	intent, block, ended := beginUse(t, direct, core, known, q)
	gate.Shut()
	if told, ok := errors.AsType[*postgres.OutcomeUnknownError](<-ended); !ok || !told.Repeatable {
		t.Errorf("%+v does not say that the use may be repeated", told)
	}
	block.Release(t)
	if err := direct.Quotes.Use(t.Context(), access.OfOperator, pgtest.NewQuotedIntent(t, known, q), ""); err == nil || err.Error() != (&quotes.UsedError{TransferID: intent.ID}).Error() {
		t.Errorf("the next use: %v", err)
	}
	if stored, err := direct.Quotes.Find(t.Context(), owner, network.Test, q.ID); err != nil || stored.TransferID != intent.ID {
		t.Errorf("%+v, %v", stored, err)
	}
}

// A use that waits for another beyond the quote's end finds it expired, by the time of its own turn.
func TestStore_Use_ExpiresInWait(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct, core := pgtest.Open(t, url), pgtest.Open(t, url)
	known, owner := pgtest.LoadRegistry(t, direct), uuid.New()
	q := pgtest.InsertQuote(t, direct, known, owner)
	ends := pgtest.LookUp[time.Time](t, direct, `UPDATE quotes SET expires_at = clock_timestamp() + interval '1 s' WHERE id = $1 RETURNING expires_at`, q.ID)
	holder := pgtest.Lock(t, direct, `SELECT FROM quotes WHERE id = $1 FOR UPDATE`, q.ID)
	ended := make(chan error, 1)
	go func() {
		ended <- core.Quotes.Use(context.WithoutCancel(t.Context()), access.OfOperator, pgtest.NewQuotedIntent(t, known, q), "")
	}()
	pgtest.Exec(t, direct, `SELECT pg_sleep_until($1)`, ends)
	pgtest.Must(t, holder.Rollback())
	if err := <-ended; !errors.Is(err, quotes.ErrExpired) {
		t.Errorf("after the wait: %v", err)
	}
}
