package intents_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// Every filter, alone and together, with and without pages, gives what a plain loop over all intents gives.
func TestTransfers_Filters(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	var made []transfer.Summary      // newest first
	var intentsOf []*transfer.Intent // one of each body
	for n := range 120 {
		body := []string{pgtest.TransferBody, pgtest.SwapBody, pgtest.BridgeBody, pgtest.LiveBody}[n%4]
		intent := pgtest.InsertTransfer(t, store, known, owner, body)
		pgtest.InsertTransfer(t, store, known, uuid.New(), body)
		var causes []transfer.Command
		switch n % 5 {
		case 1:
			causes = []transfer.Command{{Trigger: transfer.Cancel}}
		case 2:
			causes = []transfer.Command{{Trigger: transfer.Submit, Hash: "0x" + strings.Repeat("ab", 32)}}
		case 3:
			causes = []transfer.Command{{Trigger: transfer.Submit, Hash: "0x02"}, {Trigger: transfer.Fail, Failure: transfer.TxReverted, Observed: &transfer.Transaction{}}}
		default:
		}
		for _, cause := range causes {
			var err error
			if intent, err = store.Intents.Transition(t.Context(), owner, intent.ID, cause); err != nil {
				t.Fatal(err)
			}
		}
		if n%3 > 0 {
			u := wire.TransferUpdate{Labels: map[string]string{"order": []string{"", "0", `"2":"2`}[n%3], "half": strconv.Itoa(n % 2)}}
			if n%7 == 0 {
				u.Labels["order"] = "1"
			}
			var err error
			if intent, err = store.Intents.Update(t.Context(), owner, intent.ID, u); err != nil {
				t.Fatal(err)
			}
		}
		made = slices.Insert(made, 0, intent.Summary())
		if n < 4 {
			intentsOf = append(intentsOf, intent)
		}
	}
	collect := func(filter intents.TransferFilter) []transfer.Summary { return pgtest.List(t, store, owner, filter) }
	everything := collect(intents.TransferFilter{})
	if diff := cmp.Diff(made, everything); diff != "" {
		t.Fatalf("the whole list (-made +listed):\n%s", diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		filter := anyFilter(t, everything, intentsOf)
		var want []transfer.Summary
		for _, s := range everything {
			if matches(s, filter) {
				want = append(want, s)
			}
		}
		if !filter.UpdatedSince.IsZero() {
			slices.SortStableFunc(want, func(a, b transfer.Summary) int {
				if by := a.UpdatedAt.Compare(b.UpdatedAt); by != 0 {
					return by
				}
				return slices.Compare(a.ID[:], b.ID[:])
			})
		}
		if diff := cmp.Diff(want, collect(filter)); diff != "" {
			t.Fatalf("%+v (-want +got):\n%s", filter, diff)
		}
		var paged []transfer.Summary
		filter.Limit = rapid.IntRange(1, 50).Draw(t, "limit")
		for {
			page := collect(filter)
			paged = append(paged, page...)
			if len(page) < filter.Limit {
				break
			}
			last := page[len(page)-1]
			filter.After = &intents.KeysetCursor{ID: last.ID, UpdatedAt: last.UpdatedAt}
		}
		if diff := cmp.Diff(want, paged); diff != "" {
			t.Fatalf("%+v in pages (-want +got):\n%s", filter, diff)
		}
	})
}

// anyFilter is a filter whose values are those of some intents, or of none.
func anyFilter(t *rapid.T, everything []transfer.Summary, intentsOf []*transfer.Intent) intents.TransferFilter {
	filter := intents.TransferFilter{
		Environment: rapid.SampledFrom([]network.Environment{"", network.Test, network.Live}).Draw(t, "environment"),
		Type:        rapid.SampledFrom([]transfer.Type{"", transfer.Transfer, transfer.Swap, transfer.Bridge}).Draw(t, "type"),
		Statuses:    rapid.SliceOfNDistinct(rapid.SampledFrom(statuses), 0, 4, rapid.ID[transfer.Status]).Draw(t, "statuses"),
		Chain:       rapid.SampledFrom([]caip.ChainID{{}, caip.EIP155Chain(11155111), caip.EIP155Chain(84532), caip.EIP155Chain(1)}).Draw(t, "chain"),
		Labels: rapid.SampledFrom([]map[string]string{
			nil, nil, {"order": "0"}, {"order": "1", "half": "0"}, {"order": "\"2\":\"2"}, {"2": "2"}, {"order": ""}, {"rder": "0"},
		}).Draw(t, "labels"),
		Hash: rapid.SampledFrom([]string{"", "0x" + strings.Repeat("ab", 32), "0x03"}).Draw(t, "hash"),
	}
	filter.DestinationChain = rapid.SampledFrom([]caip.ChainID{{}, {}, caip.EIP155Chain(11155111), caip.EIP155Chain(84532)}).Draw(t, "destination chain")
	accounts, tokens := []caip.AccountID{{}, {}}, []caip.AccountID{{}, {}}
	for _, intent := range intentsOf { // of both sides, and of no intent
		accounts = append(accounts, intent.Source.Account, intent.Destination.Account, intent.Source.Token)
		tokens = append(tokens, intent.Source.Token, intent.Destination.Token)
		accounts = append(accounts, caip.AccountID{Address: intent.Source.Account.Address}, caip.AccountID{Address: intent.Source.Token.Address})
		tokens = append(tokens, caip.AccountID{Address: intent.Destination.Token.Address})
	}
	filter.Account = rapid.SampledFrom(accounts).Draw(t, "account")
	filter.Token = rapid.SampledFrom(tokens).Draw(t, "token")
	if rapid.Bool().Draw(t, "created after") {
		filter.CreatedAfter = rapid.SampledFrom(everything).Draw(t, "created after whom").CreatedAt
	}
	if rapid.Bool().Draw(t, "created before") {
		filter.CreatedBefore = rapid.SampledFrom(everything).Draw(t, "created before whom").CreatedAt
	}
	if rapid.Bool().Draw(t, "one order") {
		one := rapid.SampledFrom(everything).Draw(t, "order")
		filter.OrderID = &one.OrderID
	}
	if rapid.Bool().Draw(t, "since") {
		filter.UpdatedSince = rapid.SampledFrom(everything).Draw(t, "since whom").UpdatedAt
	}
	switch rapid.IntRange(0, 3).Draw(t, "alone") { // together with others, an account or a token seldom has an intent
	case 0:
		return intents.TransferFilter{Account: filter.Account}
	case 1:
		return intents.TransferFilter{Token: filter.Token}
	}
	return filter
}

var statuses = []transfer.Status{
	transfer.Created, transfer.Submitted, transfer.Confirmed, transfer.Filled,
	transfer.Refunded, transfer.Failed, transfer.Expired, transfer.Cancelled,
}

func matches(s transfer.Summary, f intents.TransferFilter) bool {
	return (f.Environment == "" || s.Environment == f.Environment) &&
		(f.Type == "" || s.Type == f.Type) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, s.Status)) &&
		(f.Chain == caip.ChainID{} || s.Source.Chain == f.Chain) &&
		(f.DestinationChain == caip.ChainID{} || s.Destination.Chain == f.DestinationChain) &&
		onEitherSide(f.Account, s, func(l transfer.SummaryLeg) string { return l.Account }) &&
		onEitherSide(f.Token, s, func(l transfer.SummaryLeg) string { return l.Token }) &&
		!s.CreatedAt.Before(f.CreatedAfter) &&
		(f.CreatedBefore.IsZero() || s.CreatedAt.Before(f.CreatedBefore)) &&
		(f.Hash == "" || s.Hash == f.Hash) &&
		hasLabels(s.Labels.Pairs(), f.Labels) &&
		(f.OrderID == nil || s.OrderID == *f.OrderID) &&
		!s.UpdatedAt.Before(f.UpdatedSince)
}

func hasLabels(pairs, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := pairs[key]; !ok || got != value {
			return false
		}
	}
	return true
}

func onEitherSide(id caip.AccountID, s transfer.Summary, address func(transfer.SummaryLeg) string) bool {
	is := func(l transfer.SummaryLeg) bool {
		return id.Address == address(l) && (id.Chain == caip.ChainID{} || id.Chain == l.Chain)
	}
	return id == caip.AccountID{} || is(s.Source) || is(s.Destination)
}

// A list longer than a batch comes whole, and a limit above a batch is kept.
func TestTransfers_CrossBatches(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	owner := uuid.New()
	fill(t, store, owner, 2500)
	for limit, want := range map[int]int{0: 2500, 999: 999, 1000: 1000, 1001: 1001, 2000: 2000, 2499: 2499, 9999: 2500} {
		for _, since := range []time.Time{{}, time.Now().Add(-24 * time.Hour)} {
			seen := map[uuid.UUID]bool{}
			for _, summary := range pgtest.List(t, store, owner, intents.TransferFilter{Limit: limit, UpdatedSince: since}) {
				seen[summary.ID] = true
			}
			if len(seen) != want {
				t.Errorf("limit %d since %v: %d intents, want %d", limit, since, len(seen), want)
			}
		}
	}
}

// Every list reads an index and sorts nothing, however the planner's statistics look.
func TestTransfers_UseIndexes(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	owner := uuid.New()
	fill(t, store, owner, 1000)
	for range 20 {
		fill(t, store, uuid.New(), 1000)
	}
	pgtest.Exec(t, store, "ANALYZE transfers")
	for name, filter := range map[string]intents.TransferFilter{
		"all":            {},
		"environment":    {Environment: network.Live},
		"type":           {Type: transfer.Swap},
		"status":         {Statuses: []transfer.Status{transfer.Failed}},
		"two statuses":   {Statuses: []transfer.Status{transfer.Failed, transfer.Created}},
		"chain":          {Chain: caip.EIP155Chain(1)},
		"order":          {OrderID: &[32]byte{}},
		"hash":           {Hash: "0x01"},
		"reference":      {Reference: "inv-42"},
		"since":          {UpdatedSince: time.Now()},
		"since a status": {UpdatedSince: time.Now(), Statuses: []transfer.Status{transfer.Failed, transfer.Created}},
	} {
		filter.Limit = 100
		plan, err := store.Intents.ExplainTransfers(t.Context(), owner, filter)
		if err != nil || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s: %v\n%s", name, err, plan)
		}
	}
}

// fill gives an account many plain intents, without their events.
func fill(t *testing.T, store *rooms.Rooms, owner uuid.UUID, n int) {
	t.Helper()
	pgtest.Exec(t, store, `INSERT INTO transfers (account_id, id, key_id, environment, type, status, order_id, source_chain, source_account, source_token,
			source_amount, destination_chain, destination_account, destination_token, destination_amount,
			origin_settler, destination_settler, order_scheme, deadline, created_at, updated_at)
		SELECT $1::uuid, gen_random_uuid(), $1::uuid, 'test', 'transfer', 'created', sha256(($1::uuid::text || n)::bytea), 'eip155:1', '0x1', '0x2', 1,
			'eip155:1', '0x3', '0x2', 1, '', '', '', now(), now(), now() - n * interval '1 s' FROM generate_series(1, $2) n`, owner, n)
}
