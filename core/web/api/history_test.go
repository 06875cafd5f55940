package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/caip"
)

var baseSepolia = caip.EIP155Chain(84532)

// A failure is explained in the record as in its event.
func TestGetTransfer_Failed(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, webtest.BridgeBody, account...)
	s.Call(t, "POST", location+"/transaction", reportOf(txHash("b")), account...)
	failed := transactionOn(sepolia, transfer.RoleOpen, "b", 80)
	failed.State, failed.Found = transfer.OrderMismatch, txHash("d")
	s.observe(t, owner, location, watched.Progress{Head: 102, Confirmed: 91, Final: 79}, failed)
	record, _ := s.Call(t, "GET", location, "", account...).Body.(map[string]any)
	order, _ := record["orderId"].(string)
	wanted := webtest.Want(t, 0, `{"hash":"`+txHash("b")+`","blockNumber":80,"expected":"`+order+`","found":"`+txHash("d")+`","message":"The transaction `+txHash("b")+
		` in block 80 of eip155:11155111 opened `+txHash("d")+` at the input settler, and not the intent's order `+order+`."}`).Body
	if diff := cmp.Diff([]any{"failed", "ORDER_ID_MISMATCH", wanted}, []any{record["status"], record["failure"], record["failureReason"]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The record follows an intent over its two chains; lists show none of it.
func TestGetTransfer_History(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, webtest.BridgeBody, account...)
	s.Call(t, "POST", location+"/transaction", reportOf(txHash("b")), account...)
	s.observe(t, owner, location, watched.Progress{Head: 102, Confirmed: 91, Final: 79}, transactionOn(sepolia, transfer.RoleOpen, "a", 100))
	expected := s.Call(t, "GET", location, "", account...)
	record := expected.Body.(map[string]any)
	check := func(what, status, confirmations string, refundable bool, transactions string) {
		t.Helper()
		record["status"], record["refundable"] = status, refundable
		record["confirmations"] = webtest.Want(t, 0, confirmations).Body
		record["transactions"] = webtest.Want(t, 0, transactions).Body
		webtest.Same(t, what, expected, s.Call(t, "GET", location, "", account...))
	}
	open := `{"role":"open","chainId":"eip155:11155111","hash":"` + txHash("a") + `","explorerUrl":"` + onSepolia("a") + `","seenAt":"<time>","blockNumber":100,`
	lost := `{"role":"open","chainId":"eip155:11155111","hash":"` + txHash("b") + `","explorerUrl":"` + onSepolia("b") + `","seenAt":"<time>","blockNumber":null,"state":"replaced"},`
	record["metadata"], record["tx"] = map[string]any{"chainId": "eip155:11155111", "hash": txHash("a")}, nil
	record["final"], record["ended"] = false, false
	check("confirmed", "confirmed", `{"have":3,"need":12,"finalized":false}`, false, `[`+lost+open+`"state":"mined"}]`)

	pgtest.Exec(t, s.Store, `UPDATE transfers SET deadline = now() - interval '1 min', expires = now() - interval '1 s'`)
	s.readSepolia(t, "now()")
	record["order"] = s.Call(t, "GET", location, "", account...).Body.(map[string]any)["order"]
	check("after its expiry", "confirmed", `{"have":3,"need":12,"finalized":false}`, true, `[`+lost+open+`"state":"mined"}]`)

	fill := `{"role":"fill","chainId":"eip155:84532","hash":"` + txHash("c") + `","explorerUrl":null,"seenAt":"<time>","blockNumber":7,`
	unconfirmed := transactionOn(baseSepolia, transfer.RoleFill, "c", 7)
	unconfirmed.Confirmed = false
	s.observe(t, owner, location, watched.Progress{Head: 8, Confirmed: 3, Final: 1}, unconfirmed)
	check("a fill is seen", "confirmed", `{"have":3,"need":12,"finalized":false}`, false, `[`+lost+open+`"state":"mined"},`+fill+`"state":"mined"}]`)

	s.observe(t, owner, location, watched.Progress{Head: 124, Confirmed: 113, Final: 100}, transactionOn(sepolia, transfer.RoleOpen, "a", 100))
	s.observe(t, owner, location, watched.Progress{Head: 31, Confirmed: 20, Final: 8}, transactionOn(baseSepolia, transfer.RoleFill, "c", 7))
	record["final"], record["ended"] = true, true
	check("filled", "filled", `{"have":25,"need":12,"finalized":true}`, false, `[`+lost+open+`"state":"finalized"},`+fill+`"state":"finalized"}]`)

	list, _ := s.Call(t, "GET", "/v2/transfers", "", account...).Body.([]any)
	summary, _ := list[0].(map[string]any)
	for _, member := range []string{"confirmations", "transactions", "refundable", "verification"} {
		if _, ok := summary[member]; ok {
			t.Errorf("a summary has %s", member)
		}
	}
}

// onSepolia is the page of a transaction at the explorer that the tests' list has for Sepolia, alone of its chains.
func onSepolia(digit string) string { return "https://sepolia.etherscan.io/tx/" + txHash(digit) }

func TestGetTransfer_Unsupported(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	unsupported := transactionOn(sepolia, transfer.RoleSend, "a", 100)
	unsupported.State, unsupported.Confirmed, unsupported.Reported = transfer.Unsupported, false, true
	s.observe(t, owner, location, watched.Progress{Head: 100}, unsupported)
	record, _ := s.Call(t, "GET", location, "", account...).Body.(map[string]any)
	transactions, _ := record["transactions"].([]any)
	if len(transactions) != 1 || transactions[0].(map[string]any)["state"] != "mined" || record["verification"] != "unsupported" || record["confirmations"] != nil {
		t.Errorf("unsupported: %v", record)
	}
	s.observe(t, owner, location, watched.Progress{Head: 101}, transactionOn(sepolia, transfer.RoleSend, "b", 101))
	record, _ = s.Call(t, "GET", location, "", account...).Body.(map[string]any)
	if record["verification"] != nil || record["confirmations"] == nil {
		t.Errorf("the effect is known: %v", record)
	}
}
