package quotes_test

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/retention"
	"intents.internal/pkg/network"
)

func TestStore_Find(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, owner := pgtest.LoadRegistry(t, store), uuid.New()
	plain := pgtest.InsertQuote(t, store, known, owner)
	full := pgtest.InsertQuote(t, store, known, owner, func(q *quote.Quote) {
		q.Environment, q.Kind, q.Duration, q.ExpiresAt = network.Live, quote.ExactOutput, 30*time.Second, q.CreatedAt.Add(-time.Minute)
		q.Source.Amount = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
		q.Fees = []quote.Fee{
			{Kind: quote.FeeTotal, Token: q.Source.Token, Amount: new(big.Int), Included: true},
			{Kind: `gas'"`, Token: q.Destination.Token, Amount: q.Source.Amount},
		}
	})
	for name, want := range map[string]quote.Quote{"plain": plain, "full, and expired": full} {
		got, err := store.Quotes.Find(t.Context(), owner, want.Environment, want.ID)
		if diff := cmp.Diff(want, got, pgtest.Amounts); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, c := range map[string]struct {
		owner, id   uuid.UUID
		environment network.Environment
	}{
		"another account":     {uuid.New(), plain.ID, network.Test},
		"another environment": {owner, plain.ID, network.Live},
		"no such id":          {owner, uuid.New(), network.Test},
	} {
		if got, err := store.Quotes.Find(t.Context(), c.owner, c.environment, c.id); !errors.Is(err, quotes.ErrNotFound) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if err := store.Quotes.Insert(t.Context(), access.OfOperator, nil); err != nil {
		t.Errorf("no quotes: %v", err)
	}
}

// An account keeps so many unused quotes, the newest; used ones and those of others are not among them.
func TestStore_Insert_Bound(t *testing.T) {
	t.Parallel()
	const kept = 10_000
	store := pgtest.New(t)
	known, owner, other := pgtest.LoadRegistry(t, store), uuid.New(), uuid.New()
	pgtest.InsertQuote(t, store, known, other)
	used := pgtest.InsertQuote(t, store, known, owner, func(q *quote.Quote) { q.TransferID = uuid.New() })
	oldest, second := pgtest.InsertQuote(t, store, known, owner), pgtest.InsertQuote(t, store, known, owner)
	pgtest.Exec(t, store, `INSERT INTO quotes SELECT made.* FROM quotes q, generate_series(1, $2) n,
		jsonb_populate_record(q, jsonb_build_object('id', 'ff000000-0000-7000-8000-' || lpad(n::text, 12, '0'))) made WHERE q.id = $1`, oldest.ID, kept-1)
	newest := pgtest.InsertQuote(t, store, known, owner, func(q *quote.Quote) { q.ID = uuid.Max })
	for name, c := range map[string]struct {
		id   uuid.UUID
		left bool
	}{"used": {used.ID, true}, "the oldest": {oldest.ID, false}, "the second": {second.ID, false}, "the newest": {newest.ID, true}} {
		if _, err := store.Quotes.Find(t.Context(), owner, network.Test, c.id); (err == nil) != c.left {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM quotes WHERE account_id = $1 AND transfer_id IS NULL`, owner); n != kept {
		t.Errorf("%d unused quotes are left", n)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM quotes WHERE account_id = $1`, other); n != 1 {
		t.Errorf("%d quotes of another account are left", n)
	}
}

// A quoted intent is read, listed and announced like any other.
func TestStore_Use(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, owner := pgtest.LoadRegistry(t, store), uuid.New()
	q := pgtest.InsertQuote(t, store, known, owner)
	intent := pgtest.NewQuotedIntent(t, known, q)
	pgtest.Must(t, store.Quotes.Use(t.Context(), access.OfOperator, intent, "once"))
	if age := store.Now().Sub(intent.CreatedAt); age.Abs() > time.Minute || !intent.UpdatedAt.Equal(intent.CreatedAt) {
		t.Errorf("created at %s, updated at %s", intent.CreatedAt, intent.UpdatedAt)
	}
	byOrder, err := store.Intents.TransferByOrder(t.Context(), owner, intent.OrderID)
	if diff := cmp.Diff(intent, byOrder, pgtest.Amounts); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if all := pgtest.List(t, store, owner, intents.TransferFilter{}); len(all) != 1 || all[0].ID != intent.ID {
		t.Errorf("listed %+v", all)
	}
	pgtest.AssignPositions(t, store)
	events, _ := pgtest.ReadFeed(t, store, pgtest.TestFeed(owner), 0)
	if diff := cmp.Diff([]string{"transfer.created 1"}, pgtest.Steps(events)); diff != "" {
		t.Errorf("the feed (-want +got):\n%s", diff)
	}
	q.TransferID = intent.ID
	got, err := store.Quotes.Find(t.Context(), owner, network.Test, q.ID)
	if diff := cmp.Diff(q, got, pgtest.Amounts); diff != "" || err != nil {
		t.Errorf("the quote: %v (-want +got):\n%s", err, diff)
	}
	// A change of the intent leaves its quote.
	pgtest.CancelTransfer(t, store, intent)
	if cancelled, err := store.Intents.Transfer(t.Context(), owner, intent.ID); err != nil || cancelled.Quote != intent.Quote {
		t.Errorf("after a change: %+v, %v", cancelled, err)
	}
}

// Nothing is written for a quote that cannot be used.
func TestStore_Use_Refused(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, owner := pgtest.LoadRegistry(t, store), uuid.New()
	used, fresh, ended := pgtest.InsertQuote(t, store, known, owner), pgtest.InsertQuote(t, store, known, owner), pgtest.InsertQuote(t, store, known, owner)
	first := pgtest.NewQuotedIntent(t, known, used)
	pgtest.Must(t, store.Quotes.Use(t.Context(), access.OfOperator, first, "once"))
	pgtest.Exec(t, store, `UPDATE quotes SET expires_at = clock_timestamp() - interval '1 s' WHERE id = $1`, ended.ID)
	with := func(q quote.Quote, change func(*quote.Quote)) quote.Quote { change(&q); return q }
	for name, c := range map[string]struct {
		of   quote.Quote
		key  string
		want string
	}{
		"used":                    {used, "", "the quote has made transfer " + first.ID.String()},
		"used, with the same key": {used, "once", "the quote has made transfer " + first.ID.String()},
		"the key of another":      {fresh, "once", "the idempotency key was used with another request"},
		"expired":                 {ended, "", quotes.ErrExpired.Error()},
		"another account":         {with(fresh, func(q *quote.Quote) { q.AccountID = uuid.New() }), "", quotes.ErrNotFound.Error()},
		"unknown":                 {with(fresh, func(q *quote.Quote) { q.ID = uuid.New() }), "", quotes.ErrNotFound.Error()},
	} {
		if err := store.Quotes.Use(t.Context(), access.OfOperator, pgtest.NewQuotedIntent(t, known, c.of), c.key); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for table, want := range map[string]int{"transfers": 1, "events": 1, "quotes WHERE transfer_id IS NOT NULL": 1} {
		if n := pgtest.LookUp[int](t, store, "SELECT count(*) FROM "+table); n != want {
			t.Errorf("%d %s", n, table)
		}
	}
	// The clock of Postgres decides, and not what a core takes for the quote's end. A machine that needs more than the second begins again.
	ended.ExpiresAt = store.Now().Add(-time.Hour)
	for {
		end := pgtest.LookUp[time.Time](t, store, `UPDATE quotes SET expires_at = clock_timestamp() + interval '1 s' WHERE id = $1 RETURNING expires_at`, ended.ID)
		err := store.Quotes.Use(t.Context(), access.OfOperator, pgtest.NewQuotedIntent(t, known, ended), "")
		if late := pgtest.LookUp[bool](t, store, `SELECT clock_timestamp() >= $1`, end); errors.Is(err, quotes.ErrExpired) && late {
			continue
		}
		if err != nil {
			t.Errorf("a second before its end by Postgres's clock: %v", err)
		}
		break
	}
}

// Each query on quotes has its index.
func TestStore_UsesIndexes(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store, plain := pgtest.Open(t, url), pgtest.Open(t, url)
	known, owner := pgtest.LoadRegistry(t, store), uuid.New()
	q := pgtest.InsertQuote(t, store, known, owner)
	pgtest.Exec(t, plain, `INSERT INTO quotes SELECT made.* FROM quotes q, generate_series(1, 5000) AS n,
		jsonb_populate_record(q, jsonb_build_object('id', gen_random_uuid(),
		'account_id', md5((n % 50)::text)::uuid, 'created_at', now() - n * interval '1 min')) AS made`)
	pgtest.Exec(t, plain, `ANALYZE quotes`)
	var asked pgtest.Statements
	pgtest.Watch(store, &asked)
	pgtest.Must(t, store.Quotes.Use(t.Context(), access.OfOperator, pgtest.NewQuotedIntent(t, known, q), ""))
	if _, err := store.Quotes.Find(t.Context(), owner, network.Test, q.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Retention.Prune(t.Context(), pgtest.Now(), retention.Retention{}); err != nil {
		t.Fatal(err)
	}
	indexes := map[string]int{}
	for _, statement := range asked.Text {
		if !strings.Contains(statement, `"quotes"`) {
			continue
		}
		plan := pgtest.PlanOf(t, plain, statement)
		index := regexp.MustCompile(`quotes_(pkey|age|unused|ended)`).FindString(plan)
		if indexes[index]++; strings.Contains(plan, "Seq Scan") {
			t.Errorf("no index for\n%s\n%s", statement, plan)
		}
	}
	if indexes[""] > 0 || indexes["quotes_pkey"]+indexes["quotes_unused"] < 2 || indexes["quotes_age"] == 0 {
		t.Errorf("indexes that are used: %v", indexes)
	}
}
