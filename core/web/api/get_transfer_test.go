package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestGetTransfer(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := webtest.Keyed(uuid.New(), "test"), webtest.Keyed(uuid.New(), "test")
	notFound := webtest.Refused(t, 404, "NOT_FOUND", "The account has no such transfer.")
	for _, request := range []string{webtest.TransferBody, webtest.SwapBody, webtest.BridgeBody} {
		_, location, created := s.CreateTransfer(t, request, ann...)
		var record struct{ ID, OrderID string }
		if err := json.Unmarshal([]byte(created), &record); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{record.ID, strings.ToUpper(record.ID), record.OrderID, "0x" + strings.ToUpper(record.OrderID[2:])} {
			response := s.Send(t, "GET", "/v2/transfers/"+name, "", ann...)
			if diff := cmp.Diff(created, webtest.ReadAll(t, response)); diff != "" || response.StatusCode != 200 {
				t.Errorf("%s: %d (-created +read):\n%s", name, response.StatusCode, diff)
			}
			webtest.Same(t, "another account's", notFound, s.Call(t, "GET", "/v2/transfers/"+name, "", bob...))
		}
		if location != "/v2/transfers/"+record.ID {
			t.Errorf("location %s of %s", location, record.ID)
		}
		other := append(webtest.Keyed(uuid.MustParse(ann[1]), "live"), "X-Key-Id", uuid.NewString())
		if got := s.Call(t, "GET", location, "", other...); got.Status != 200 {
			t.Errorf("with another key of the account: %+v", got)
		}
	}
	id := pgtest.LookUp[string](t, s.Store, `SELECT id FROM transfers LIMIT 1`)
	for _, name := range []string{
		uuid.NewString(), "0x" + strings.Repeat("0", 64), "1", "null", "0x", "0x12", "0x" + strings.Repeat("g", 64), "%00", "%20", "%2e%2e",
		"{" + id + "}", strings.ReplaceAll(id, "-", ""), "urn:uuid:" + id, strings.Repeat("a", 5000),
	} {
		webtest.Same(t, name, notFound, s.Call(t, "GET", "/v2/transfers/"+name, "", ann...))
	}
	webtest.Same(t, "query", webtest.Invalid(t, "full", "is not a known parameter"), s.Call(t, "GET", "/v2/transfers/"+id+"?full=1", "", ann...))
}

// An intent that an earlier version recorded has an order of another scheme, which no transaction can open any more.
func TestGetTransfer_EarlierScheme(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	_, bridge, _ := s.CreateTransfer(t, webtest.BridgeBody, account...)
	_, plain, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	pgtest.Exec(t, s.Store, `UPDATE transfers SET order_scheme = 'erc7683-v1/OrderData', deployment = NULL, input_oracle = NULL, output_oracle = NULL, expires = NULL`)
	s.Example(t, "a bridge that an earlier version has recorded", "GET", bridge, "", account...)
	record, _ := s.Call(t, "GET", plain, "", account...).Body.(map[string]any)
	if record["order"] != nil || record["tx"] == nil {
		t.Errorf("a transfer: %v", record)
	}
}

func TestGetTransfer_EveryStatus(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.SwapBody, account...)
	type ends struct{ Final, Ended any }
	for status, want := range map[string]ends{
		"created": {false, false}, "submitted": {false, false}, "confirmed": {false, false}, "failed": {false, true}, "expired": {false, true},
		"filled": {true, true}, "refunded": {true, true}, "cancelled": {true, true},
	} {
		var failure any
		if status == "failed" {
			failure = "TX_REVERTED"
		}
		pgtest.Exec(t, s.Store, `UPDATE transfers SET status = $1, hash = '0xabc', failure = $2`, status, failure)
		fields, _ := s.Call(t, "GET", location, "", account...).Body.(map[string]any)
		got := []any{fields["status"], ends{fields["final"], fields["ended"]}, fields["failure"], fields["metadata"], fields["tx"] != nil}
		payable := status == "created" || status == "submitted"
		wantFields := []any{status, want, failure, map[string]any{"chainId": "eip155:11155111", "hash": "0xabc"}, payable}
		if diff := cmp.Diff(wantFields, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
		if !payable {
			continue
		}
		pgtest.Exec(t, s.Store, `UPDATE transfers SET deadline = now() + interval '23 s'`) // less than two blocks
		if due, _ := s.Call(t, "GET", location, "", account...).Body.(map[string]any); due["tx"] != nil || due["status"] != status {
			t.Errorf("%s right before its deadline: %v", status, due)
		}
		pgtest.Exec(t, s.Store, `UPDATE transfers SET deadline = now() + interval '1 h'`)
	}
}
