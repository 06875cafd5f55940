package intents_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity/identities"
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
		pgtest.Must(t, store.Quotes.Use(t.Context(), identities.OfOperator, intent, ""))
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
		begun, err := cores[core].Intents.BeginSubmission(t.Context(), identities.OfOperator, account, id, "PROVIDER_TIMEOUT")
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
	for batch := 0; ; batch++ {
		due, more, err := store.Intents.TakeSubmissions(t.Context())
		pgtest.Must(t, err)
		for _, intent := range due {
			if taken[intent.ID]++; intent.ID == last && batch > 0 {
				t.Errorf("the account with one order is in batch %d", batch)
			}
		}
		if !more {
			break
		}
	}
	if len(taken) != 41 || taken[last] != 1 {
		t.Errorf("%d orders were taken, the last %d times", len(taken), taken[last])
	}
	pgtest.Must(t, store.Intents.SaveSubmission(t.Context(), few, last, transfer.SubmissionFailed, "no", false))
	pgtest.Exec(t, store, `UPDATE transfers SET submission_due_at = now() WHERE submission_due_at IS NOT NULL`)
	if due, _, err := store.Intents.TakeSubmissions(t.Context()); err != nil || len(due) == 0 || len(due) > 40 {
		t.Errorf("a minute later: %d orders, %v", len(due), err)
	}
	if left := pgtest.LookUp[int](t, store, `SELECT count(*) FROM transfers WHERE submission_due_at IS NULL`); left != 1 {
		t.Errorf("%d orders are not asked about, and one has failed", left)
	}
}
