package intents_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
)

// insertSubmitted stores intents of an account that are to be submitted, signed and not yet sent.
func insertSubmitted(t *testing.T, store *rooms.Rooms, account uuid.UUID, count int) (ids []uuid.UUID) {
	t.Helper()
	known := pgtest.LoadRegistry(t, store)
	for range count {
		intent := pgtest.NewQuotedIntent(t, known, pgtest.InsertQuote(t, store, known, account))
		pgtest.Must(t, store.Quotes.Use(t.Context(), access.OfOperator, intent, ""))
		pgtest.Exec(t, store, `UPDATE transfers SET signing = 'permit2', submit = true, signature = '\x01', signed_at = now() WHERE id = $1`, intent.ID)
		ids = append(ids, intent.ID)
	}
	return ids
}

// One of two cores begins a submission, once, and none without a signature or of an intent that is cancelled.
func TestStore_BeginSubmission(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	cores := [2]*rooms.Rooms{pgtest.Open(t, url), pgtest.Open(t, url)}
	account := uuid.New()
	ids := insertSubmitted(t, cores[0], account, 4)
	begin := func(core int, id uuid.UUID) bool {
		t.Helper()
		begun, err := cores[core].Intents.BeginSubmission(t.Context(), access.OfOperator, account, id, "PROVIDER_TIMEOUT")
		pgtest.Must(t, err)
		return begun
	}
	if !begin(0, ids[0]) || begin(1, ids[0]) || begin(0, ids[0]) {
		t.Error("it did not begin once")
	}
	for n, change := range []string{"signature = NULL", "status = 'cancelled', cancelled_at = now()", "submit = false"} {
		pgtest.Exec(t, cores[0], `UPDATE transfers SET `+change+` WHERE id = $1`, ids[n+1])
		if begin(1, ids[n+1]) {
			t.Errorf("%s: it began", change)
		}
	}
	begun, err := cores[0].Intents.Transfer(t.Context(), account, ids[0])
	pgtest.Must(t, err)
	if s := begun.Signing.Submitted; s == nil || s.Status != "PROVIDER_TIMEOUT" || s.At.IsZero() || s.Detail != "" || s.Provider != begun.Quote.Provider {
		t.Errorf("begun: %+v", s)
	}
}

// takeRound takes submissions until none is due.
func takeRound(t *testing.T, store *rooms.Rooms, each func(batch int, due []*transfer.Intent)) {
	t.Helper()
	after, more := uuid.Nil, true
	for batch := 0; more; batch++ {
		var due []*transfer.Intent
		var err error
		due, after, more, err = store.Intents.TakeSubmissions(t.Context(), after)
		pgtest.Must(t, err)
		each(batch, due)
	}
}

// An account with one order has its turn in the first batch, however many another account has, and an order is in one batch of a minute.
func TestStore_TakeSubmissions_Share(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	many, few := uuid.New(), uuid.New()
	insertSubmitted(t, store, many, 40)
	last := insertSubmitted(t, store, few, 1)[0]
	pgtest.Exec(t, store, `UPDATE transfers SET submitted_at = now(), submission_status = 'received',
		submission_due_at = CASE WHEN account_id = $1 THEN now() ELSE now() - interval '1 min' END`, few)
	taken := map[uuid.UUID]int{}
	takeRound(t, store, func(batch int, due []*transfer.Intent) {
		for _, intent := range due {
			if taken[intent.ID]++; intent.ID == last && batch > 0 {
				t.Errorf("the account with one order is in batch %d", batch)
			}
		}
	})
	if len(taken) != 41 || taken[last] != 1 {
		t.Errorf("%d orders were taken, the last %d times", len(taken), taken[last])
	}
	pgtest.Must(t, store.Intents.SaveSubmission(t.Context(), few, last, transfer.SubmissionFailed, "no", false))
	pgtest.Exec(t, store, `UPDATE transfers SET submission_due_at = now() WHERE submission_due_at IS NOT NULL`)
	taken = map[uuid.UUID]int{}
	takeRound(t, store, func(_ int, due []*transfer.Intent) {
		for _, intent := range due {
			taken[intent.ID]++
		}
	})
	if len(taken) != 40 || taken[last] != 0 {
		t.Errorf("a minute later: %d orders, and one has failed", len(taken))
	}
	if left := pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers WHERE submission_due_at IS NULL`); left != 1 {
		t.Errorf("%d orders are not asked about, and one has failed", left)
	}
}

// One account has tens of thousands of orders that are due, and more accounts than a batch looks at have orders that are not: the last account has
// its turn in the same round nevertheless, and no batch reads more for it.
func TestStore_TakeSubmissions_ManyRows(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
	hog, stranger := uuid.UUID{15: 1}, uuid.Max
	copied := insertSubmitted(t, plain, hog, 1)[0]
	last := insertSubmitted(t, plain, stranger, 1)[0]
	pgtest.Exec(t, plain, `UPDATE transfers SET submitted_at = now(), submission_status = 'received', submission_due_at = now() - interval '1 s'`)
	others := pgtest.LookUp[string](t, plain, `SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute WHERE attrelid = 'transfers'::regclass AND attnum > 0
		AND attname NOT IN ('account_id', 'id', 'order_id', 'quote_id', 'submission_due_at')`)
	copies := `INSERT INTO transfers (account_id, id, order_id, quote_id, submission_due_at, ` + others + `)
		SELECT CASE WHEN n <= $2 THEN md5(n::text)::uuid ELSE account_id END, md5(n::text)::uuid, sha256(n::text::bytea), md5(n::text)::uuid,
			CASE WHEN n <= $2 THEN now() + interval '1 h' ELSE now() - interval '1 h' - n * interval '1 ms' END, ` + others + `
		FROM transfers CROSS JOIN generate_series($3::int, $4::int) n WHERE id = $1`
	pgtest.Exec(t, plain, copies, copied, 1100, 1, 1500)
	pgtest.Exec(t, plain, "ANALYZE transfers") // of few orders
	var asked pgtest.Statements
	pgtest.Watch(store, &asked)
	take := func(after uuid.UUID) (due []*transfer.Intent, next uuid.UUID, blocks int) {
		t.Helper()
		due, next, more, err := store.Intents.TakeSubmissions(t.Context(), after)
		pgtest.Must(t, err)
		if !more {
			t.Error("the round ends too early")
		}
		asked.Mu.Lock()
		defer asked.Mu.Unlock()
		blocks = buffersRead(t, plain, asked.Text)
		asked.Text = nil
		return due, next, blocks
	}
	_, _, few := take(uuid.Nil)
	pgtest.Exec(t, plain, copies, copied, 1100, 1501, 30_000)
	due, next, many := take(uuid.Nil)
	t.Logf("%d blocks of 400 orders of one account, %d of 29,000", few, many)
	if len(due) != 16 || many > 2*few {
		t.Errorf("%d orders of an account, %d blocks, and %d of few orders", len(due), many, few)
	}
	due, next, _ = take(next)
	if len(due) != 1 || due[0].ID != last || next != uuid.Nil {
		t.Errorf("second batch: %d orders, then after %s", len(due), next)
	}
}
