package retention_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/retention"
	"intents.internal/core/transfer"
)

const day = 24 * time.Hour

func TestPrune_Retention(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, at := pgtest.LoadRegistry(t, store), pgtest.Now()
	owner := pgtest.SignUp(t, store, "ann@example.com").ID
	pgtest.SignUp(t, store, "bob@example.com")
	// The days since the last change of intents that were cancelled, and of one that may still be sent.
	ids := map[string]uuid.UUID{}
	for name, age := range map[string]int{"old": 100, "older": 400, "young": 1} {
		intent := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
		_, err := store.Intents.Transition(t.Context(), owner, intent.ID, transfer.Command{Trigger: transfer.Cancel})
		pgtest.Must(t, err)
		ids[name] = intent.ID
		pgtest.Exec(t, store, `UPDATE transfers SET updated_at = $2 WHERE id = $1`, intent.ID, at.AddDate(0, 0, -age))
		pgtest.AssignPositions(t, store)
		pgtest.Exec(t, store, `UPDATE feed SET position = position - 86400000000 * $2 WHERE event_id IN (SELECT id FROM events WHERE transfer_id = $1)`, intent.ID, age)
	}
	open := pgtest.InsertTransfer(t, store, known, owner, pgtest.SwapBody)
	pgtest.Exec(t, store, `UPDATE transfers SET updated_at = $2 WHERE id = $1`, open.ID, at.AddDate(0, 0, -400))
	for _, age := range []int{29, 31, 364, 366} {
		written := at.AddDate(0, 0, -age)
		pgtest.Exec(t, store, `INSERT INTO audit_log (id, account_id, occurred_at, actor, action, key_id, key_name, detail, ip_address, user_agent)
			SELECT encode(substring(int8send($2) FROM 3) || '\x70008000000000000000' , 'hex')::uuid,
			$1, $3, 'owner', 'signed_in', NULL, '', '', '', ''`, owner, written.UnixMilli(), written)
	}
	pgtest.AssignPositions(t, store)
	counts := func() map[string]int {
		t.Helper()
		return map[string]int{
			"feed":      pgtest.LookUp[int](t, store, `SELECT count(*) FROM feed`),
			"events":    pgtest.LookUp[int](t, store, `SELECT count(*) FROM events`),
			"transfers": pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers`),
			"audit_log": pgtest.LookUp[int](t, store, `SELECT count(*) FROM audit_log`),
		}
	}
	for _, c := range []struct {
		name    string
		keep    retention.Retention
		removed map[string]int64
		left    map[string]int
	}{
		{"for ever", retention.Retention{}, nil, map[string]int{"feed": 7, "events": 7, "transfers": 4, "audit_log": 6}},
		{
			"the defaults",
			retention.Retention{Events: 200 * day, Audit: 365 * day},
			map[string]int64{"feed": 2, "audit_log": 1},
			map[string]int{"feed": 5, "events": 6, "transfers": 4, "audit_log": 5}, // the newest event of an intent stays
		},
		{
			"the shortest log",
			retention.Retention{Audit: retention.MinAuditRetention},
			map[string]int64{"audit_log": 2},
			map[string]int{"feed": 5, "events": 6, "transfers": 4, "audit_log": 3},
		},
		{
			"intents too",
			retention.Retention{Transfers: retention.MinTransfersRetention},
			map[string]int64{"transfers": 2},
			map[string]int{"feed": 5, "events": 3, "transfers": 2, "audit_log": 3},
		},
	} {
		removed, err := store.Retention.Prune(t.Context(), at, c.keep)
		pgtest.Must(t, err)
		for table, n := range removed {
			if n == 0 {
				delete(removed, table)
			}
		}
		if diff := cmp.Diff(c.removed, removed, cmp.Transformer("filled", func(m map[string]int64) map[string]int64 {
			if m == nil {
				return map[string]int64{}
			}
			return m
		})); diff != "" {
			t.Errorf("%s (-want removed +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.left, counts()); diff != "" {
			t.Errorf("%s (-want left +got):\n%s", c.name, diff)
		}
	}
	for name, id := range ids {
		_, err := store.Intents.Transfer(t.Context(), owner, id)
		if there := err == nil; there != (name == "young") {
			t.Errorf("the %s intent: %v", name, err)
		}
	}
	if _, err := store.Intents.Transfer(t.Context(), owner, open.ID); err != nil {
		t.Errorf("the intent that may still be sent: %v", err)
	}
}

// An intent that was simulated waits for nothing, so it goes with its age in each status.
func TestPrune_Simulated(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, owner := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	for _, status := range []transfer.Status{transfer.Submitted, transfer.Confirmed} {
		intent := pgtest.InsertTransfer(t, store, known, owner, pgtest.SwapBody)
		_, err := store.Intents.Simulate(t.Context(), access.OfKey(owner), owner, intent.ID, status)
		pgtest.Must(t, err)
	}
	pgtest.Exec(t, store, `UPDATE transfers SET updated_at = now() - interval '400 days'`)
	removed, err := store.Retention.Prune(t.Context(), pgtest.Now(), retention.Retention{Transfers: retention.MinTransfersRetention})
	if err != nil || removed["transfers"] != 2 {
		t.Errorf("removed %v, %v", removed, err)
	}
}

func TestPrune_Batches(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	owner := pgtest.SignUp(t, store, "ann@example.com").ID
	pgtest.Exec(t, store, `WITH one AS (SELECT gen_random_uuid() AS id), added AS (
			INSERT INTO events (account_id, transfer_id, to_status, occurred_at, sequence)
			SELECT $1, id, 'created', now() - interval '60 d', n FROM one, generate_series(1, 12001) AS n RETURNING id
		)
		INSERT INTO feed (position, account_id, environment, type, event_id, sequence, occurred_at)
		SELECT row_number() OVER (ORDER BY id), $1, 'test', 'transfer.created', id, 1, now() FROM added ORDER BY id LIMIT 12000`, owner)
	pgtest.Exec(t, store, `UPDATE feed_state SET last_position = 12000`)
	keep := retention.Retention{Events: 30 * day}
	// Another core is at it.
	tx := pgtest.Lock(t, store, `SELECT pg_advisory_xact_lock(7403118226)`)
	removed, err := store.Retention.Prune(t.Context(), pgtest.Now(), keep)
	if err != nil || removed["feed"] != 0 {
		t.Errorf("beside another core: removed %v, %v", removed, err)
	}
	pgtest.Must(t, tx.Rollback())
	if removed, err = store.Retention.Prune(t.Context(), pgtest.Now(), keep); err != nil || removed["feed"] != 12000 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM events`); n != 1 {
		t.Errorf("%d events are left", n)
	}
}

// Quotes that made an intent can be read for 30 days, others for a day after their end.
func TestPrune_Quotes(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, at, owner := pgtest.LoadRegistry(t, store), pgtest.Now(), uuid.New()
	for age, left := range map[time.Duration]bool{0: true, day - time.Minute: true, day + time.Minute: false} {
		q := pgtest.InsertQuote(t, store, known, owner, func(q *quote.Quote) { q.ExpiresAt = at.Add(-age) })
		_, err := store.Retention.Prune(t.Context(), at, retention.Retention{})
		pgtest.Must(t, err)
		if _, err := store.Quotes.Find(t.Context(), owner, q.Environment, q.ID); (err == nil) != left {
			t.Errorf("an unused quote that ended %s ago: %v", age, err)
		}
	}
	for age, left := range map[time.Duration]bool{0: true, 30*day - time.Minute: true, 30*day + time.Minute: false} {
		q := pgtest.InsertQuote(t, store, known, owner, func(q *quote.Quote) {
			q.CreatedAt, q.ExpiresAt, q.TransferID = at.Add(-age), at.Add(-age), uuid.New()
		})
		_, err := store.Retention.Prune(t.Context(), at, retention.Retention{})
		pgtest.Must(t, err)
		if _, err := store.Quotes.Find(t.Context(), owner, q.Environment, q.ID); (err == nil) != left {
			t.Errorf("a quote of %s ago: %v", age, err)
		}
	}
}

// A batch is there as long as one of its intents.
func TestPrune_Batch(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, at := pgtest.LoadRegistry(t, store), pgtest.Now()
	owner := pgtest.SignUp(t, store, "ann@example.com").ID
	drafts := []*transfer.Intent{pgtest.NewIntent(t, known, owner, pgtest.TransferBody), pgtest.NewIntent(t, known, owner, pgtest.TransferBody)}
	batch := &intents.Batch{ID: transfer.NewID(at), AccountID: owner, KeyID: drafts[0].KeyID, Environment: drafts[0].Environment, Count: len(drafts)}
	if inserted, err := store.Intents.InsertBatch(t.Context(), batch, "payroll", drafts); err != nil || !inserted {
		t.Fatal(inserted, err)
	}
	left := func() [2]int {
		return [2]int{pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers`), pgtest.LookUp[int](t, store, `SELECT count(*) FROM batches`)}
	}
	for n, want := range [][2]int{{1, 1}, {0, 0}} {
		_, err := store.Intents.Transition(t.Context(), owner, drafts[n].ID, transfer.Command{Trigger: transfer.Cancel})
		pgtest.Must(t, err)
		pgtest.Exec(t, store, `UPDATE transfers SET updated_at = $2 WHERE id = $1`, drafts[n].ID, at.AddDate(0, 0, -100))
		_, err = store.Retention.Prune(t.Context(), at, retention.Retention{Transfers: 90 * day})
		pgtest.Must(t, err)
		if diff := cmp.Diff(want, left()); diff != "" {
			t.Errorf("after %d of 2 intents, transfers and batches (-want +got):\n%s", n+1, diff)
		}
	}
}
