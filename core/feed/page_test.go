package feed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// TestEventPage_Bodies compares the whole body of each type.
func TestEventPage_Bodies(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	intent := pgtest.InsertTransfer(t, store, known, ann, pgtest.BridgeBody)
	observed := &transfer.Transaction{Chain: intent.Source.Account.Chain}
	failed := &transfer.Transaction{
		Chain: intent.Source.Account.Chain, Hash: common.HexToHash("0xa"), Block: &transfer.Block{Number: 7}, Found: common.HexToHash("0xb").Hex(),
	}
	pgtest.Exec(t, store, `UPDATE transfers SET deadline = now() - interval '1 h'`)
	for _, c := range []transfer.Command{
		{Trigger: transfer.Cancel},
		{Trigger: transfer.Submit, Hash: "0xa"},
		{Trigger: transfer.Fail, Failure: transfer.OrderIDMismatch, Observed: failed},
		{Trigger: transfer.Submit, Hash: "0xb"},
		{Trigger: transfer.Drop},
		{Trigger: transfer.Submit, Hash: "0xc"},
		{Trigger: transfer.Confirm, Hash: "0xc", Observed: observed},
		{Trigger: transfer.Refundable},
		{Trigger: transfer.Fill, Observed: observed},
		{Trigger: transfer.Reorg, To: transfer.Confirmed, Hash: "0xc"},
		{Trigger: transfer.Refund, Observed: observed},
	} {
		if _, err := store.Intents.Transition(t.Context(), ann, intent.ID, c); err != nil {
			t.Fatalf("%s: %v", c.Trigger, err)
		}
	}
	pgtest.AssignPositions(t, store)
	endpoint := uuid.New()
	at := pgtest.Now()
	err := store.Feed.InTx(t.Context(), postgres.NoTurn, func(_ context.Context, tx feed.Tx) error {
		return tx.AppendEvent(pgtest.TestFeed(ann), feed.TypeWebhookDisabled, at,
			json.RawMessage(`{"id":"`+endpoint.String()+`","url":"https://example.com/<&>","reason":"gone"}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	events, next := pgtest.ReadFeed(t, store, pgtest.TestFeed(ann), 0)
	added := events[len(events)-1]
	if next != added.Position || !added.At.Equal(at) {
		t.Errorf("the feed ends at %d, not at %d of %s", next, added.Position, added.At)
	}
	type step struct{ name, status, from, hash, failure string }
	null := func(s string) string {
		if s == "" {
			return "null"
		}
		return `"` + s + `"`
	}
	deadline := pgtest.LookUp[string](t, store, `SELECT to_char(deadline, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') FROM transfers`)
	for n, s := range []step{
		{"created", "created", "", "", ""},
		{"cancelled", "cancelled", "created", "", ""},
		{"submitted", "submitted", "cancelled", "0xa", ""},
		{"failed", "failed", "submitted", "0xa", "ORDER_ID_MISMATCH"},
		{"submitted", "submitted", "failed", "0xb", ""},
		{"expired", "expired", "submitted", "0xb", ""},
		{"submitted", "submitted", "expired", "0xc", ""},
		{"confirmed", "confirmed", "submitted", "0xc", ""},
		{"refundable", "confirmed", "confirmed", "0xc", ""},
		{"filled", "filled", "confirmed", "0xc", ""},
		{"reorganized", "confirmed", "filled", "0xc", ""},
		{"refunded", "refunded", "confirmed", "0xc", ""},
	} {
		at := pgtest.LookUp[string](t, store, `SELECT to_char(occurred_at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') FROM events ORDER BY id OFFSET $1 LIMIT 1`, n)
		hash := ""
		if s.hash != "" {
			hash = `,"hash":"` + s.hash + `"`
		}
		reason := "null"
		if s.failure != "" {
			reason = fmt.Sprintf(`{"message":"The transaction %s in block 7 of eip155:11155111 opened %s at the input settler, and not the intent's order 0x%x.",`+
				`"hash":"%[1]s","blockNumber":7,"expected":"0x%[3]x","found":"%[2]s"}`, failed.Hash.Hex(), failed.Found, intent.OrderID)
		}
		want := fmt.Sprintf(`{"type":"transfer.%s","timestamp":"%s","environment":"test","sequence":%d,"data":{"id":"%s","type":"bridge",`+
			`"status":"%s","orderId":"0x%x","createdAt":"%s","updatedAt":"%s","metadata":{"chainId":"eip155:11155111"%s},"environment":"test",`+
			`"source":{"account":"%s","token":"%s","amount":"5"},"destination":{"account":"%s","token":"%s","amount":"4"},"deadline":"%s",`+
			`"reference":null,"labels":{},"batchId":null,"signing":null,"ended":%t,"from":%s,"to":"%s","hash":%s,"failure":%s,"failureReason":%s}}`,
			s.name, at, n+1, intent.ID, s.status, intent.OrderID, intent.CreatedAt.Format("2006-01-02T15:04:05.000Z"), at, hash,
			intent.Source.Account, intent.Source.Token, intent.Destination.Account, intent.Destination.Token, deadline,
			slices.Contains([]string{"cancelled", "failed", "expired", "filled", "refunded"}, s.status), null(s.from), s.status, null(s.hash), null(s.failure), reason)
		compareEvent(t, events[n], events[n].ID, want)
	}
	compareEvent(t, events[len(events)-1], added.ID, fmt.Sprintf(
		`{"type":"webhook.disabled","timestamp":"%s","environment":"test","sequence":null,"data":{"id":"%s","url":"https://example.com/\u003c\u0026\u003e","reason":"gone"}}`,
		added.At.Format("2006-01-02T15:04:05.000Z"), endpoint))
	byPosition, err := store.Feed.EventsAt(t.Context(), []int64{events[3].Position, events[0].Position, 7})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int64]feed.Event{events[0].Position: events[0], events[3].Position: events[3]}, byPosition); diff != "" {
		t.Errorf("by position (-want +got):\n%s", diff)
	}
	for _, other := range []feed.Owner{{AccountID: ann, Environment: network.Live}, pgtest.TestFeed(uuid.New())} {
		if got, _ := pgtest.ReadFeed(t, store, other, 0); len(got) > 0 {
			t.Errorf("%v reads %v", other, pgtest.Steps(got))
		}
	}
}

// compareEvent compares the body of an event and its form in the feed.
func compareEvent(t *testing.T, e feed.Event, id feed.ID, want string) {
	t.Helper()
	body, err := e.Body()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	inFeed, err := e.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"id":"`+id.String()+`",`+want[1:], string(inFeed)); diff != "" {
		t.Errorf("in the feed (-want +got):\n%s", diff)
	}
}

// The environment is that of the source chain when the intent was created.
func TestEventPage_Environment(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	pgtest.InsertTransfer(t, store, known, ann, pgtest.LiveBody)
	pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	pgtest.Exec(t, store, `UPDATE chains SET environment = 'live'`)
	pgtest.AssignPositions(t, store)
	for environment, want := range map[network.Environment]int{network.Test: 1, network.Live: 1} {
		if events, _ := pgtest.ReadFeed(t, store, feed.Owner{AccountID: ann, Environment: environment}, 0); len(events) != want {
			t.Errorf("%s has %d events, want %d", environment, len(events), want)
		}
	}
}

func TestEventPage_Filter(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), pgtest.SignUp(t, store, "ann@example.com").ID
	cancelled, err := feed.ParseFilter("transfer.cancelled")
	if err != nil {
		t.Fatal(err)
	}
	read := func(after int64, limit int) feed.EventPage {
		t.Helper()
		page, err := store.Feed.EventPage(t.Context(), pgtest.TestFeed(ann), after, cancelled, limit)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	for range 3 {
		intent := pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
		pgtest.CancelTransfer(t, store, intent)
	}
	pgtest.AssignPositions(t, store)
	first := read(0, 2)
	if diff := cmp.Diff([]string{"transfer.cancelled 2", "transfer.cancelled 2"}, pgtest.Steps(first.Events)); diff != "" || first.End || first.Next != first.Events[1].Position {
		t.Errorf("%+v:\n%s", first, diff)
	}
	rest := read(first.Next, 2)
	if len(rest.Events) != 1 || !rest.End {
		t.Errorf("the rest: %+v", rest)
	}
	// A quiet reader's position moves with the feed, past what its filter leaves out.
	pgtest.InsertTransfer(t, store, known, ann, pgtest.TransferBody)
	pgtest.AssignPositions(t, store)
	if none := read(rest.Next, 2); len(none.Events) != 0 || none.Next <= rest.Next || !none.End {
		t.Errorf("after another event: %+v", none)
	}
	// One reading looks at 10,000 events at most.
	pgtest.Exec(t, store, `INSERT INTO feed (position, account_id, environment, type, event_id, sequence, occurred_at)
		SELECT last_position + n, $1, 'test', 'transfer.created', n, 1, now() FROM feed_state, generate_series(1, 10500) AS n`, ann)
	last := pgtest.LookUp[int64](t, store, `UPDATE feed_state SET last_position = last_position + 10500 RETURNING last_position`)
	far := read(rest.Next, 2)
	if len(far.Events) != 0 || far.End || far.Next != last-501 {
		t.Errorf("through 10,501 others: %+v, want %d", far, last-501)
	}
	if end := read(far.Next, 2); len(end.Events) != 0 || !end.End || end.Next != last {
		t.Errorf("at the end: %+v", end)
	}
}
