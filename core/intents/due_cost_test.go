package intents_test

import (
	"encoding/json"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
)

// idle are rows that nothing is due of: $1 is the number of the first and $2 of the last, each of another account.
var idle = map[string]string{
	"attempts that are looked up later": `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, seen_at, due_at)
		SELECT md5(n::text)::uuid, md5(n::text)::uuid, 'eip155:11155111', sha256(n::text::bytea), 'send', CASE n % 2 WHEN 0 THEN 'pending' ELSE 'dropped' END, true, now(),
			now() + interval '1 h' FROM generate_series($1::int, $2::int) n`,
	"attempts that have failed": `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, confirmed_at, seen_at, due_at)
		SELECT md5(n::text)::uuid, md5(n::text)::uuid, 'eip155:11155111', sha256(n::text::bytea), 'send', 'replaced', true, now(), now(),
			now() + interval '1 h' FROM generate_series($1::int, $2::int) n`,
	"orders that are compared later": `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, block_number, block_hash, log_index, confirmed_at, seen_at, due_at)
		SELECT md5(n::text)::uuid, md5(n::text)::uuid, 'eip155:11155111', sha256(n::text::bytea), 'refund', 'mined', false, 5, sha256('5'), 0, now(), now(),
			now() + interval '1 h' FROM generate_series($1::int, $2::int) n`,
	"transactions that are contradicted": `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, block_number, block_hash, seen_at, compare_at, disputed_since)
		SELECT md5((n % 1000)::text)::uuid, md5(n::text)::uuid, 'eip155:11155111', sha256(n::text::bytea), 'open', 'reverted', true, 5, sha256('5'), now(),
			now() + interval '30 min', now() - interval '2 h' FROM generate_series($1::int, $2::int) n`,
	"orders whose attempts failed or are not mined": `INSERT INTO transfers (account_id, id, key_id, environment, type, status, failure, order_id, source_chain,
			source_account, source_token, source_amount, destination_chain, destination_account, destination_token, destination_amount, origin_settler,
			destination_settler, order_scheme, deadline, expires, created_at, updated_at, hash)
		SELECT md5(n::text)::uuid, md5(n::text)::uuid, md5(n::text)::uuid, 'test', 'swap', status, failure, sha256(n::text::bytea), 'eip155:11155111', '0x1', '0x2', 1,
			'eip155:11155111', '0x3', '0x4', 1, '0x5', '0x6', 'oif-v1/StandardOrder', deadline, deadline, now(), now(), '0x0'
		FROM generate_series($1::int, $2::int) n
		JOIN (VALUES (0, 'failed', 'TX_REVERTED', now() - interval '1 h'), (1, 'submitted', NULL, now() + interval '1 h')) AS kinds (kind, status, failure, deadline)
			ON kind = n % 2`,
	"orders that were claimed": `INSERT INTO transfers (account_id, id, key_id, environment, type, status, order_id, source_chain, source_account, source_token,
			source_amount, destination_chain, destination_account, destination_token, destination_amount, origin_settler, destination_settler,
			order_scheme, deadline, expires, created_at, updated_at, hash, answered)
		SELECT md5(n::text)::uuid, md5(n::text)::uuid, md5(n::text)::uuid, 'test', 'swap', 'confirmed', sha256(n::text::bytea), 'eip155:11155111', '0x1', '0x2', 1,
			'eip155:11155111', '0x3', '0x4', 1, '0x5', '0x6', 'oif-v1/StandardOrder', now(), now(), now(), now(), '0x0', true
		FROM generate_series($1::int, $2::int) n`,
	"orders that were simulated": `INSERT INTO transfers (account_id, id, key_id, environment, type, status, failure, order_id, source_chain, source_account,
			source_token, source_amount, destination_chain, destination_account, destination_token, destination_amount, origin_settler, destination_settler,
			order_scheme, deadline, expires, created_at, updated_at, simulated, answered)
		SELECT md5(n::text)::uuid, md5(n::text)::uuid, md5(n::text)::uuid, 'test', 'swap', status, failure, sha256(n::text::bytea), 'eip155:11155111', '0x1', '0x2', 1,
			'eip155:11155111', '0x3', '0x4', 1, '0x5', '0x6', 'oif-v1/StandardOrder', now() - interval '1 s', now() - interval '1 s', now(), now(), true, true
		FROM generate_series($1::int, $2::int) n
		JOIN (VALUES (0, 'failed', 'TX_REVERTED'), (1, 'submitted', NULL), (2, 'confirmed', NULL)) AS kinds (kind, status, failure) ON kind = n % 3`,
	"orders that solvers are asked about later": `INSERT INTO transfers (account_id, id, key_id, environment, type, status, order_id, source_chain, source_account,
			source_token, source_amount, destination_chain, destination_account, destination_token, destination_amount, origin_settler, destination_settler,
			order_scheme, deadline, expires, created_at, updated_at, submit, submitted_at, submission_due_at)
		SELECT md5((n % 1000)::text)::uuid, md5(n::text)::uuid, md5(n::text)::uuid, 'test', 'swap', 'created', sha256(n::text::bytea), 'eip155:11155111', '0x1', '0x2', 1,
			'eip155:11155111', '0x3', '0x4', 1, '0x5', '0x6', 'oif-v1/StandardOrder', now(), now(), now(), now(), true, now(), now() + interval '1 h'
		FROM generate_series($1::int, $2::int) n`,
}

// dueRows is how many rows TestPoll_ReadsOnlyWhatIsDue has: -due.rows=1000000 takes minutes.
var dueRows = flag.Int("due.rows", 100_000, "rows of which none is due")

// A poll reads only what is due: with a hundred times as many rows of which none is due it reads no more.
func TestPoll_ReadsOnlyWhatIsDue(t *testing.T) {
	t.Parallel()
	for name, insert := range idle {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
			pgtest.Exec(t, plain, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, head_number, confirmed_block, final_block, read_at, complete_until)
				VALUES ('eip155:11155111', 'core', 1, now(), 9, 8, 7, now(), now() + interval '1 h')`)
			chain, progress := caip.EIP155Chain(11155111), watched.Progress{Confirmed: 8, Final: 7}
			var asked pgtest.Statements
			pgtest.Watch(store, &asked)
			poll := func() (blocks int, statements string) {
				_, _, err := store.Intents.DueAttempts(t.Context(), chain, intents.Turn{}, 500)
				pgtest.Must(t, err)
				_, _, err = store.Intents.DueFailed(t.Context(), chain, intents.Turn{}, 50)
				pgtest.Must(t, err)
				_, _, err = store.Intents.DueOrders(t.Context(), chain, intents.Turn{}, 100)
				pgtest.Must(t, err)
				_, err = store.Intents.UnconfirmedTransactions(t.Context(), chain, progress, store.Intents.Now(), 500)
				pgtest.Must(t, err)
				_, err = store.Intents.ChainActive(t.Context(), chain)
				pgtest.Must(t, err)
				_, err = store.Intents.WriteRefundableEvents(t.Context())
				pgtest.Must(t, err)
				_, err = store.Intents.OverdueOrders(t.Context(), chain, store.Intents.Now().Add(-time.Minute), store.Intents.Now(), 100)
				pgtest.Must(t, err)
				_, _, _, err = store.Intents.TakeSubmissions(t.Context(), uuid.Nil)
				pgtest.Must(t, err)
				asked.Mu.Lock()
				defer asked.Mu.Unlock()
				statements = strings.Join(asked.Text, "\n")
				blocks = buffersRead(t, plain, asked.Text)
				asked.Text = nil
				return blocks, statements
			}
			pgtest.Exec(t, plain, insert, 1, 1000)
			pgtest.Exec(t, plain, "VACUUM ANALYZE")
			few, _ := poll()
			for from := 1001; from <= *dueRows; from += 100_000 {
				pgtest.Exec(t, plain, insert, from, min(from+99_999, *dueRows))
			}
			pgtest.Exec(t, plain, "VACUUM ANALYZE")
			many, statements := poll()
			t.Logf("%d blocks of 1,000 rows, %d of %d", few, many, *dueRows)
			if many > 2*few {
				t.Errorf("%d blocks are read of %d rows, and %d of 1,000:\n%s", many, *dueRows, few, statements)
			}
		})
	}
}

// buffersRead is how many blocks of tables and indexes the statements read, with the settings of those before.
func buffersRead(t *testing.T, plain *rooms.Rooms, asked []string) (blocks int) {
	t.Helper()
	tx := pgtest.Begin(t, plain)
	for _, statement := range asked {
		if statement == postgres.IndexOrder {
			_, err := tx.ExecContext(t.Context(), statement)
			pgtest.Must(t, err)
			continue
		}
		if !strings.HasPrefix(statement, "SELECT") && !strings.HasPrefix(statement, "WITH") {
			continue
		}
		var plans []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		var text []byte
		err := tx.QueryRowContext(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+statement).Scan(&text)
		pgtest.Must(t, err)
		pgtest.Must(t, json.Unmarshal(text, &plans))
		blocks += plans[0].Plan.Hit + plans[0].Plan.Read
	}
	pgtest.Must(t, tx.Rollback())
	return blocks
}

// An account takes the places that nobody waits for, and none of those of others.
func TestUnconfirmedTransactions_Shares(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, chain := pgtest.LoadRegistry(t, store), caip.EIP155Chain(11155111)
	hog, other := pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody), pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody)
	mine := func(intent *transfer.Intent, block, count int) {
		pgtest.Exec(t, store, `INSERT INTO transactions (account_id, transfer_id, chain_id, hash, role, state, reported, block_number, block_hash, seen_at)
			SELECT $1, $2, 'eip155:11155111', sha256(($3::int || '-' || n)::bytea), 'send', 'reverted', true, $3::int, sha256('b'), now() FROM generate_series(1, $4::int) n`,
			intent.AccountID, intent.ID, block, count)
	}
	read := func() map[uuid.UUID]int {
		page, err := store.Intents.UnconfirmedTransactions(t.Context(), chain, watched.Progress{Confirmed: 8, Final: 7}, store.Intents.Now(), 500)
		pgtest.Must(t, err)
		of := map[uuid.UUID]int{}
		for _, f := range page {
			of[f.AccountID]++
		}
		return of
	}
	mine(hog, 3, 900)
	if got := read(); got[hog.AccountID] != 500 {
		t.Errorf("an account alone has %d of 500 places", got[hog.AccountID])
	}
	mine(other, 8, 3)
	mine(other, 9, 200) // not deep enough
	if got := read(); got[other.AccountID] != 3 || got[hog.AccountID] != 497 {
		t.Errorf("places %v", got)
	}
}
