package intents_test

import (
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
)

// The history of an intent can be read while the database has columns of a later version.
func TestTransferHistory_LaterColumns(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, owner := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	intent := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
	if _, err := store.Intents.ReportTransaction(t.Context(), access.OfOperator, owner, []uuid.UUID{intent.ID}, [32]byte{1}); err != nil {
		t.Fatal(err)
	}
	intent.Status = transfer.Submitted
	pgtest.Exec(t, store, "ALTER TABLE transactions ADD COLUMN later timestamptz")
	history, err := store.Intents.TransferHistory(t.Context(), intent)
	if err != nil || len(history.Transactions) != 1 {
		t.Errorf("%d transactions, %v", len(history.Transactions), err)
	}
}
