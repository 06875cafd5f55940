package intents_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/pkg/caip"
)

var transactionsScan = regexp.MustCompile(`Seq Scan on transactions\b|transactions_(pkey|effect)`)

// queueAttempts gives an account an intent with so many attempts on Sepolia, due since a time in SQL.
func queueAttempts(t *testing.T, store *rooms.Rooms, known *registry.Snapshot, owner uuid.UUID, attempts int, due string) {
	t.Helper()
	intent := pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
	pgtest.Exec(t, store, fmt.Sprintf(`INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, seen_at, due_at)
		SELECT $1, $2, 'eip155:11155111', sha256(n::text::bytea), 'send', 'pending', true, now(), %s FROM generate_series(1, %d) AS n`, due, attempts), owner, intent.ID)
}

// refundAll gives each attempt a refund that is compared with its settlers when the attempt is due.
const refundAll = `INSERT INTO transactions
	(account_id, transfer_id, chain_id, hash, role, state, reported, block_number, block_hash, log_index, confirmed_at, seen_at, due_at)
	SELECT account_id, transfer_id, chain_id, hash, 'refund', 'mined', false, 1, hash, 0, now(), seen_at, due_at FROM transactions`

// Accounts take turns, also where more have due attempts than a page has places, and none is left out.
func TestDueAttempts_AccountsTakeTurns(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, chain := pgtest.LoadRegistry(t, store), caip.EIP155Chain(11155111)
	var accounts []uuid.UUID
	for n := range 7 {
		accounts = append(accounts, uuid.New())
		queueAttempts(t, store, known, accounts[n], 1+20*(n%2), "now() - interval '1 hour'")
	}
	queueAttempts(t, store, known, uuid.New(), 5, "now() + interval '1 hour'")
	served := map[uuid.UUID]int{}
	var after intents.Turn
	for range 7 {
		page, next, err := store.Intents.DueAttempts(t.Context(), chain, after, 3)
		if err != nil || len(page) != 3 {
			t.Fatalf("%d attempts, %v", len(page), err)
		}
		after = next
		for _, f := range page {
			served[f.AccountID]++
		}
	}
	for n, id := range accounts {
		if served[id] != 3 {
			t.Errorf("account %d was served %d times in 7 pages of 3 places for 7 accounts", n, served[id])
		}
	}
	page, _, err := store.Intents.DueAttempts(t.Context(), chain, intents.Turn{}, 20)
	if err != nil || len(page) > 20 {
		t.Fatalf("%d attempts, %v", len(page), err)
	}
	places := map[uuid.UUID]int{}
	for _, f := range page {
		places[f.AccountID]++
	}
	for n, id := range accounts {
		if got := places[id]; got < 1+n%2 {
			t.Errorf("account %d has %d of 20 places", n, got)
		}
	}
	everything, _, err := store.Intents.DueAttempts(t.Context(), chain, intents.Turn{}, 500)
	if err != nil || len(everything) != 4+3*21 {
		t.Errorf("%d attempts, %v; want those of all accounts that are due", len(everything), err)
	}
}

// Attempts that were never looked up come before those that are due again.
func TestDueAttempts_NewFirst(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, owner := pgtest.LoadRegistry(t, store), uuid.New()
	queueAttempts(t, store, known, owner, 3, "now() - interval '1 hour'")
	queueAttempts(t, store, known, owner, 2, "to_timestamp(0)")
	page, _, err := store.Intents.DueAttempts(t.Context(), caip.EIP155Chain(11155111), intents.Turn{}, 3)
	if err != nil || len(page) != 3 {
		t.Fatalf("%d attempts, %v", len(page), err)
	}
	if page[0].DueAt.Unix() != 0 || page[1].DueAt.Unix() != 0 || page[2].DueAt.Unix() == 0 {
		t.Errorf("due at %v, %v, %v", page[0].DueAt, page[1].DueAt, page[2].DueAt)
	}
}

// The queue's statements read no more of the table than they return.
func TestDueAttempts_UsesIndexes(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
	known, chain := pgtest.LoadRegistry(t, store), caip.EIP155Chain(11155111)
	var accounts []uuid.UUID
	for n := range 20 {
		accounts = append(accounts, uuid.New())
		queueAttempts(t, store, known, accounts[n], 1000, "now() - interval '1 hour'")
	}
	pgtest.Exec(t, plain, refundAll)
	pgtest.Exec(t, plain, "ANALYZE")
	var asked pgtest.Statements
	pgtest.Watch(store, &asked)
	if _, _, err := store.Intents.DueAttempts(t.Context(), chain, intents.Turn{}, 10); err != nil {
		t.Fatal(err)
	}
	if orders, _, err := store.Intents.DueOrders(t.Context(), chain, intents.Turn{}, 10); err != nil || len(orders) != 10 {
		t.Fatalf("%d orders, %v", len(orders), err)
	}
	over, err := store.Intents.AccountsOverUnknown(t.Context(), chain, accounts[:2], 999)
	if err != nil || len(over) != 2 {
		t.Errorf("accounts with more than 999 unknown attempts: %v, %v", over, err)
	}
	if over, err = store.Intents.AccountsOverUnknown(t.Context(), chain, accounts[:2], 1000); err != nil || len(over) != 0 {
		t.Errorf("accounts with more than 1000 unknown attempts: %v, %v", over, err)
	}
	asked.Mu.Lock()
	defer asked.Mu.Unlock()
	if len(asked.Text) < 6 {
		t.Errorf("only %d statements", len(asked.Text))
	}
	for _, statement := range asked.Text {
		if plan := pgtest.PlanOf(t, plain, statement); transactionsScan.MatchString(plan) {
			t.Errorf("no index for\n%s\n%s", statement, plan)
		}
	}
}

// Refunded orders keep no chain active, and are not read to know it.
func TestChainActive_Refunded(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
	known, chain := pgtest.LoadRegistry(t, store), caip.EIP155Chain(11155111)
	for range 10 {
		queueAttempts(t, store, known, uuid.New(), 1000, "now() - interval '1 hour'")
	}
	pgtest.Exec(t, plain, refundAll)
	pgtest.Exec(t, plain, "DELETE FROM transactions WHERE role <> 'refund'")
	pgtest.Exec(t, plain, "DELETE FROM chain_activity")
	pgtest.Exec(t, plain, "ANALYZE")
	var asked pgtest.Statements
	pgtest.Watch(store, &asked)
	if active, err := store.Intents.ChainActive(t.Context(), chain); err != nil || active {
		t.Errorf("active %t, %v", active, err)
	}
	asked.Mu.Lock()
	defer asked.Mu.Unlock()
	for _, statement := range asked.Text {
		if plan := pgtest.PlanOf(t, plain, statement); transactionsScan.MatchString(plan) {
			t.Errorf("no index for\n%s\n%s", statement, plan)
		}
	}
}

// A row that this version cannot read, such as one of a later version during an upgrade, is skipped and reported; the others are read.
func TestDueAttempts_Unreadable(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, chain := pgtest.LoadRegistry(t, store), caip.EIP155Chain(11155111)
	other := uuid.New()
	queueAttempts(t, store, known, uuid.New(), 2, "now() - interval '1 hour'")
	queueAttempts(t, store, known, other, 2, "now() - interval '1 hour'")
	pgtest.Exec(t, store, "UPDATE transfers SET source_chain = 'of a later version', destination_chain = 'of a later version' WHERE account_id <> $1", other)
	reported := 0
	store.Intents.OnUnreadable(func(error) { reported++ })
	page, _, err := store.Intents.DueAttempts(t.Context(), chain, intents.Turn{}, 10)
	if err != nil || len(page) != 2 || page[0].AccountID != other || reported == 0 {
		t.Errorf("%d attempts, %v, %d reported", len(page), err, reported)
	}
}
