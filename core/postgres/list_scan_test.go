package postgres_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

const (
	// listed is how many rows each list of the account has, many times what a page may read.
	listed = 100_000
	// mostRead is how many rows a page may read: those of a short scan, those of a long one, and those that it returns.
	mostRead = postgres.LongScan + 1_000 + 2*1_001
)

// longLists is a database where one account's lists have many rows. Half of the rows have the one value of each filter and half the other.
type longLists struct {
	*testing.T

	// store is watched by asked, and plain is not.
	store, plain *rooms.Rooms
	asked        pgtest.Statements
	endpoint     *webhooks.Endpoint
	owner        feed.Owner
}

func newLongLists(t *testing.T) *longLists {
	t.Helper()
	url := pgtest.Database(t)
	l := &longLists{T: t, store: pgtest.Open(t, url), plain: pgtest.Open(t, url)}
	pgtest.Watch(l.store, &l.asked)
	l.endpoint, _ = pgtest.InsertWebhook(t, l.plain, pgtest.WebhookRules(t, make([]byte, 32), nil), pgtest.SignUp(t, l.plain, "ann@example.com"))
	l.owner = l.endpoint.Owner()
	pgtest.Exec(t, l.plain, `INSERT INTO transfers (account_id, id, key_id, environment, type, status, order_id, source_chain, source_account, source_token,
			source_amount, destination_chain, destination_account, destination_token, destination_amount, origin_settler, destination_settler,
			order_scheme, deadline, created_at, updated_at, reference, hash, labels)
		SELECT $1::uuid, (lpad(to_hex(1700000000000 + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, $1::uuid, 'test',
			CASE n % 2 WHEN 0 THEN 'transfer' ELSE 'swap' END, CASE n % 2 WHEN 0 THEN 'submitted' ELSE 'confirmed' END, sha256(n::text::bytea),
			CASE n % 2 WHEN 0 THEN 'eip155:1' ELSE 'eip155:10' END, '0x1', '0x2', 1, CASE n % 2 WHEN 0 THEN 'eip155:1' ELSE 'eip155:10' END, '0x3',
			CASE n % 2 WHEN 0 THEN '0x2' ELSE '0x4' END, 1, CASE n % 2 WHEN 0 THEN '' ELSE '0x5' END, CASE n % 2 WHEN 0 THEN '' ELSE '0x6' END, '', now(), now(),
			'2026-01-01'::timestamptz + n * interval '1 s', 'ref-' || n % 2, '0x0' || n % 2, '{"half":"' || n % 2 || '"}'
		FROM generate_series(1, $2) n`, l.owner.AccountID, listed)
	pgtest.Exec(t, l.plain, `INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, next_attempt_at, created_at, updated_at)
		SELECT $1, md5(n::text)::uuid, n, 'transfer.created', CASE n % 2 WHEN 0 THEN 'failed' ELSE 'pending' END, 1,
			CASE n % 2 WHEN 1 THEN now() + interval '1 h' END, now(), now() FROM generate_series(1, $2) n`, l.endpoint.ID, listed)
	pgtest.Exec(t, l.plain, `INSERT INTO feed (position, account_id, environment, type, occurred_at, data)
		SELECT n, $1, 'test', 'transfer.created', now(), '{}' FROM generate_series(1, $2) n`, l.owner.AccountID, listed)
	pgtest.Exec(t, l.plain, `UPDATE feed_state SET last_position = $1`, listed)
	pgtest.Exec(t, l.plain, `INSERT INTO audit_log (id, account_id, occurred_at, actor, action, key_name, detail, ip_address, user_agent)
		SELECT (lpad(to_hex(1700000000000 + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, $1, now(), 'owner', 'signed_in', '', '', '', ''
		FROM generate_series(1, $2) n`, l.owner.AccountID, listed)
	// The statistics mislead: they are of the time before the account's rows.
	return l
}

// scanNode is a node of a plan that was run.
type scanNode struct {
	Type    string     `json:"Node Type"`
	Rows    float64    `json:"Actual Rows"`
	Removed float64    `json:"Rows Removed by Filter"`
	Loops   float64    `json:"Actual Loops"`
	Plans   []scanNode `json:"Plans"`
}

func (n scanNode) read() (rows float64) {
	if strings.HasSuffix(n.Type, "Scan") && n.Type != "Subquery Scan" && n.Type != "CTE Scan" {
		rows = (n.Rows + n.Removed) * n.Loops
	}
	for _, below := range n.Plans {
		rows += below.read()
	}
	return rows
}

// rowsRead is how many rows the statements since the last call have read.
func (l *longLists) rowsRead() (rows float64, statements string) {
	l.Helper()
	l.asked.Mu.Lock()
	asked := l.asked.Text
	l.asked.Text = nil
	l.asked.Mu.Unlock()
	if len(asked) == 0 {
		l.Fatal("nothing was asked")
	}
	ordered := false
	for _, statement := range asked {
		switch {
		case !strings.HasPrefix(statement, "SELECT"): // begins or ends a transaction
			ordered = false
		case statement == postgres.IndexOrder:
			ordered = true
		default:
			// What reads summaries sends IndexOrder along, which a hook does not see; TestListScan_IndexOrder counts what that reads.
			rows += l.explain(statement, ordered || strings.Contains(statement, `"destination_amount"`)).read()
		}
	}
	return rows, strings.Join(asked, "\n")
}

// explain runs a statement and returns what it did.
func (l *longLists) explain(statement string, ordered bool) scanNode {
	l.Helper()
	tx := pgtest.Begin(l.T, l.plain)
	defer func() { _ = tx.Rollback() }()
	if ordered {
		if _, err := tx.ExecContext(l.Context(), postgres.IndexOrder); err != nil {
			l.Fatal(err)
		}
	}
	var text []byte
	if err := tx.QueryRowContext(l.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+statement).Scan(&text); err != nil {
		l.Fatalf("%s: %v", statement, err)
	}
	var plans []struct{ Plan scanNode }
	if err := json.Unmarshal(text, &plans); err != nil {
		l.Fatal(err)
	}
	return plans[0].Plan
}

// check reads a page of which no row matches, and counts the rows that were read for it.
func (l *longLists) check(name string, page func() (rows int, more bool, err error)) {
	l.Helper()
	rows, _, err := page()
	if err != nil || rows > 0 && !strings.HasPrefix(name, "one index") {
		l.Errorf("%s: %d rows match, %v", name, rows, err)
	}
	if read, statements := l.rowsRead(); read > mostRead {
		l.Errorf("%s: %.0f rows were read, want at most %d:\n%s", name, read, mostRead, statements)
	}
}

// filters are all filters of intents with two conditions or more, of which no two are true of one intent.
func filters() (all []intents.TransferFilter) {
	conditions := []func(f *intents.TransferFilter, half int){
		func(f *intents.TransferFilter, half int) {
			f.Type = []transfer.Type{transfer.Transfer, transfer.Swap}[half]
		},
		func(f *intents.TransferFilter, half int) {
			f.Statuses = []transfer.Status{[]transfer.Status{transfer.Submitted, transfer.Confirmed}[half]}
			if f.Type != "" { // several statuses too
				f.Statuses = append(f.Statuses, transfer.Failed)
			}
		},
		func(f *intents.TransferFilter, half int) {
			f.Chain = []caip.ChainID{caip.EIP155Chain(1), caip.EIP155Chain(10)}[half]
		},
		func(f *intents.TransferFilter, half int) { f.Hash = fmt.Sprintf("0x0%d", half) },
		func(f *intents.TransferFilter, half int) { f.Reference = fmt.Sprintf("ref-%d", half) },
	}
	for chosen := range 1 << len(conditions) {
		for _, since := range []time.Time{{}, time.Unix(0, 0)} {
			f, n := intents.TransferFilter{UpdatedSince: since}, 0
			for bit, condition := range conditions {
				if chosen>>bit&1 == 1 {
					condition(&f, n%2)
					n++
				}
			}
			if n >= 2 {
				all = append(all, f)
			}
		}
	}
	for _, f := range []intents.TransferFilter{
		{},
		{Type: transfer.Swap},
		{Statuses: []transfer.Status{transfer.Submitted}},
		{Statuses: []transfer.Status{transfer.Failed, transfer.Submitted}},
		{Chain: caip.EIP155Chain(1)},
		{UpdatedSince: time.Unix(0, 0)},
	} {
		f.Environment = network.Live // of which the account has none
		all = append(all, f)
		f.Environment = network.Test
		nobody := caip.AccountID{Chain: caip.EIP155Chain(1), Address: "0x9"}
		for _, none := range []intents.TransferFilter{
			{DestinationChain: caip.EIP155Chain(9)},
			{Account: nobody},
			{Token: nobody},
			{Labels: map[string]string{"half": "2"}},
			{CreatedAfter: time.Unix(1_700_000_000, 0), CreatedBefore: time.Unix(1_700_000_100, 0)}, // by their ids, all are of this time
		} {
			none.Environment, none.Type, none.Statuses, none.Chain, none.UpdatedSince = f.Environment, f.Type, f.Statuses, f.Chain, f.UpdatedSince
			all = append(all, none)
		}
	}
	return append(all, intents.TransferFilter{UpdatedSince: time.Unix(0, 0), Type: transfer.Bridge}, intents.TransferFilter{UpdatedSince: time.Unix(0, 0), Chain: caip.EIP155Chain(2)},
		intents.TransferFilter{UpdatedSince: time.Unix(0, 0), Statuses: []transfer.Status{transfer.Expired}}, intents.TransferFilter{UpdatedSince: time.Unix(0, 0), Hash: "0x"},
		intents.TransferFilter{UpdatedSince: time.Unix(0, 0), Reference: "none"})
}

// A page of any list with any filter reads a bounded number of rows, also where none of the account's many matches.
func TestListScan_RowsRead(t *testing.T) {
	t.Parallel()
	l := newLongLists(t)
	none, err := feed.ParseFilter("transfer.cancelled")
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 1000} {
		for n, filter := range []intents.TransferFilter{
			{},
			{Environment: network.Test},
			{Environment: network.Test, Type: transfer.Swap},
			{Type: transfer.Swap},
			{Statuses: []transfer.Status{transfer.Submitted}},
			{Statuses: []transfer.Status{transfer.Failed, transfer.Submitted}},
			{Chain: caip.EIP155Chain(1)},
			{Hash: "0x01"},
			{Reference: "ref-0"},
			{UpdatedSince: time.Unix(0, 0)},
		} {
			filter.Limit = limit
			l.check(fmt.Sprintf("one index, %d", n), func() (int, bool, error) {
				rows, next, err := l.store.Intents.SummaryPage(t.Context(), l.owner.AccountID, filter)
				return len(rows), next != nil, err
			})
		}
		for _, filter := range filters() {
			filter.Limit = limit
			l.check(fmt.Sprintf("summaries %+v", filter), func() (int, bool, error) {
				rows, next, err := l.store.Intents.SummaryPage(t.Context(), l.owner.AccountID, filter)
				return len(rows), next != nil, err
			})
			if limit == 1 {
				l.check(fmt.Sprintf("intents %+v", filter), func() (int, bool, error) {
					rows, next, err := l.store.Intents.TransferPage(t.Context(), l.owner.AccountID, filter)
					return len(rows), next != nil, err
				})
			}
		}
		l.check("delivered", func() (int, bool, error) {
			rows, next, err := l.store.Webhooks.Deliveries(t.Context(), l.owner, l.endpoint.ID, webhooks.DeliveryQuery{Status: webhooks.Delivered, Limit: limit})
			return len(rows), next != nil, err
		})
		l.check("events", func() (int, bool, error) {
			page, err := l.store.Feed.EventPage(t.Context(), l.owner, 0, none, limit)
			return len(page.Events), !page.End, err
		})
		l.check("events of the other environment", func() (int, bool, error) {
			page, err := l.store.Feed.EventPage(t.Context(), feed.Owner{AccountID: l.owner.AccountID, Environment: network.Live}, 0, none, limit)
			return len(page.Events), !page.End, err
		})
		l.check("audit log", func() (int, bool, error) {
			_, _, err := l.store.Identities.AuditLog(t.Context(), l.owner.AccountID, access.AuditQuery{Limit: min(limit, 26)})
			return 0, false, err
		})
		l.check("audit log of an action", func() (int, bool, error) {
			_, _, err := l.store.Identities.AuditLog(t.Context(), l.owner.AccountID, access.AuditQuery{Action: account.AccountDeleted, Limit: min(limit, 26)})
			return 0, false, err
		})
	}
}

// A long page of an account that the planner's statistics do not know reads no row after its last, by Postgres's own count.
func TestListScan_IndexOrder(t *testing.T) {
	t.Parallel()
	l := newLongLists(t)
	fetched := func() int {
		return pgtest.LookUp[int](t, l.store, `SELECT coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'transfers'`)
	}
	asynctest.Eventually(t, "the rows that were inserted are counted", func() bool {
		return pgtest.LookUp[int](t, l.plain, `SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'transfers'`) >= listed
	})
	before := fetched()
	filter := intents.TransferFilter{UpdatedSince: time.Unix(0, 0), Limit: 1000}
	if rows, next, err := l.store.Intents.SummaryPage(t.Context(), l.owner.AccountID, filter); err != nil || len(rows) != 1000 || next == nil {
		t.Fatalf("%d rows, %v, %v", len(rows), next, err)
	}
	read := 0
	asynctest.Eventually(t, "the rows that were read are counted", func() bool {
		read = fetched() - before
		return read >= 1000
	})
	if read > mostRead {
		t.Errorf("%d rows were read for a page of 1,000", read)
	}
}

// The pages of a filtered list, followed to the end, have every row that matches, and so has the list without pages.
func TestListScan_FollowsToTheEnd(t *testing.T) {
	t.Parallel()
	l := newLongLists(t)
	pgtest.Exec(t, l.plain, `UPDATE transfers SET source_chain = 'eip155:10', destination_chain = 'eip155:10' WHERE order_id IN (SELECT sha256(n::text::bytea)
		FROM unnest(ARRAY[2, 20000, 60000, 60002, 100000]) AS n)`)
	pgtest.Exec(t, l.plain, `UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL WHERE position IN (1, 20001, 60001, 60003, 99999)`)
	for _, since := range []time.Time{{}, time.Unix(0, 0)} {
		for _, limit := range []int{1, 2, 1000} {
			filter := intents.TransferFilter{Statuses: []transfer.Status{transfer.Submitted}, Chain: caip.EIP155Chain(10), UpdatedSince: since}
			want := pgtest.List(t, l.plain, l.owner.AccountID, filter)
			if len(want) != 5 {
				t.Fatalf("the whole list has %d intents, want 5", len(want))
			}
			var paged []transfer.Summary
			empty, more := 0, true
			for filter.Limit = limit; more; {
				rows, next, err := l.store.Intents.SummaryPage(t.Context(), l.owner.AccountID, filter)
				if err != nil {
					t.Fatal(err)
				}
				if len(rows) == 0 {
					empty++
				}
				paged = append(paged, rows...)
				filter.After, more = next, next != nil
			}
			if diff := cmp.Diff(want, paged); diff != "" || empty == 0 {
				t.Errorf("pages of %d since %v, %d of them empty (-whole +pages):\n%s", limit, since, empty, diff)
			}
		}
	}
	var delivered []int64
	query := webhooks.DeliveryQuery{Status: webhooks.Delivered, Limit: 2}
	for more := true; more; more = query.After != nil {
		page, next, err := l.store.Webhooks.Deliveries(t.Context(), l.owner, l.endpoint.ID, query)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page {
			delivered = append(delivered, d.Position)
		}
		query.After = next
	}
	if diff := cmp.Diff([]int64{99999, 60003, 60001, 20001, 1}, delivered); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}
