package transfer_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/evm"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
)

// allFailures are the declared constants of the type.
func allFailures(t *testing.T) (all []transfer.Failure) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "failure.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if value, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := value.Type.(*ast.Ident); ok && kind.Name == "Failure" {
				text, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, transfer.Failure(text))
			}
		}
		return true
	})
	if len(all) < 4 {
		t.Fatalf("failure.go declares %q", all)
	}
	return all
}

func TestSummary_Explain(t *testing.T) {
	t.Parallel()
	bridge, payment := newIntent(transfer.Bridge).Summary(), newIntent(transfer.Transfer).Summary()
	order, found := common.Hash(bridge.OrderID).Hex(), hashB.Hex()
	subject, mined := "The transaction "+hashA.Hex()+" on eip155:11155111", "The transaction "+hashA.Hex()+" in block 7 of eip155:11155111"
	for _, c := range []struct {
		failure                  transfer.Failure
		summary                  *transfer.Summary
		found, expected, message string
	}{
		{transfer.TxReverted, &bridge, "", "", mined + " reverted: the chain undid all that it did."},
		{transfer.TxReplaced, &payment, found, hashA.Hex(), subject + " was replaced: " + found + " used its nonce and does not carry out the intent."},
		{transfer.TxReplaced, &bridge, "", hashA.Hex(), subject + " was replaced: another transaction used its nonce and does not carry out the intent."},
		{transfer.TxMismatch, &payment, "999999", "1000000", mined + " paid the recipient 999999 units of the token, and not exactly 1000000."},
		{transfer.TxMismatch, &payment, "", "1000000", mined + " has no payment of exactly 1000000 units of the token to the recipient that is for this intent alone."},
		{transfer.TxMismatch, &bridge, "0", "1000000", mined + " opened the order and paid the input settler 0 units of the token, and not 1000000."},
		{transfer.TxMismatch, &bridge, "", order, mined + " succeeded and did not open the intent's order " + order + "."},
		{transfer.OrderIDMismatch, &bridge, found, order, mined + " opened " + found + " at the input settler, and not the intent's order " + order + "."},
		{transfer.OrderIDMismatch, &bridge, "", order, mined + " opened another order at the input settler, and not the intent's order " + order + "."},
	} {
		failed := &transfer.Transaction{Chain: sepolia, Hash: hashA, Block: block7, Found: c.found}
		if c.failure == transfer.TxReplaced {
			failed.Block = nil
		}
		want := &transfer.FailureReason{Message: c.message, Hash: hashA.Hex(), Block: failed.Block, Expected: c.expected, Found: c.found}
		if diff := cmp.Diff(want, c.summary.Explain(c.failure, failed)); diff != "" {
			t.Errorf("%s of a %s (-want +got):\n%s", c.failure, c.summary.Type, diff)
		}
	}
	for _, failure := range allFailures(t) {
		for _, summary := range []*transfer.Summary{&bridge, &payment} {
			if r := summary.Explain(failure, &transfer.Transaction{Chain: sepolia, Hash: hashA}); !strings.Contains(r.Message, hashA.Hex()) {
				t.Errorf("%s of a %s has no sentence: %q", failure, summary.Type, r.Message)
			}
		}
	}
}

func TestIntent_FailureReason(t *testing.T) {
	t.Parallel()
	intent := newIntent(transfer.Transfer)
	history := transfer.History{Transactions: []transfer.Transaction{
		attempt(hashA, transfer.Reverted, true), attempt(hashB, transfer.Replaced, true), attempt(hashC, transfer.Pending, false),
	}}
	for failure, want := range map[string]string{"": "", "TX_REVERTED": hashA.Hex(), "TX_REPLACED": hashB.Hex(), "TX_MISMATCH": ""} {
		intent.Failure = failure
		got := ""
		if r := intent.FailureReason(history); r != nil {
			got = r.Hash
		}
		if got != want {
			t.Errorf("%q is explained by %q, want %q", failure, got, want)
		}
	}
}

// What is found must be among the logs that a receipt is read with.
func TestIntent_Judge_Found(t *testing.T) {
	t.Parallel()
	erc20, ether, bridge, other := newIntent(transfer.Transfer), newIntent(transfer.Transfer), newIntent(transfer.Bridge), newIntent(transfer.Bridge)
	ether.Source.Token.Address = registry.NativeAddress
	other.OrderID = hashB
	to := common.HexToAddress(bob)
	moved := func(amount int64) evm.Log {
		return evm.Log{
			Address: common.HexToAddress(usdc), Topics: []common.Hash{event("Transfer(address,address,uint256)"), padded(alice), padded(bob)},
			Data: common.BigToHash(big.NewInt(amount)).Bytes(),
		}
	}
	sent := evm.Transaction{From: common.HexToAddress(alice), To: &to, Value: big.NewInt(1)}
	for name, c := range map[string]struct {
		intent *transfer.Intent
		logs   []evm.Log
		sent   evm.Transaction
		want   string
	}{
		"paid":                     {erc20, []evm.Log{moved(999_999), moved(1_000_000)}, sent, ""},
		"less":                     {erc20, []evm.Log{moved(999_999)}, sent, "999999"},
		"nothing":                  {erc20, nil, sent, ""},
		"to another":               {erc20, []evm.Log{paidTo(alice, 1_000_000)}, sent, ""},
		"native, less":             {ether, nil, sent, "1"},
		"native, a new contract":   {ether, nil, evm.Transaction{From: sent.From, Value: sent.Value}, ""},
		"another order":            {bridge, []evm.Log{paidTo(inputSettler, 1_000_000), opened(other)}, sent, hashB.Hex()},
		"no order":                 {bridge, []evm.Log{paidTo(inputSettler, 1_000_000)}, sent, ""},
		"opened without a deposit": {bridge, []evm.Log{opened(bridge)}, sent, "0"},
		"opened with less":         {bridge, []evm.Log{paidTo(inputSettler, 999_999), opened(bridge)}, sent, "999999"},
		"opened":                   {bridge, []evm.Log{paidTo(inputSettler, 1_000_000), opened(bridge)}, sent, ""},
	} {
		in := transfer.Inclusion{Receipt: evm.Receipt{Succeeded: true}, Transaction: c.sent, BlockTime: c.intent.CreatedAt}
		for _, l := range c.logs {
			if c.intent.Concerns(l) {
				in.Receipt.Logs = append(in.Receipt.Logs, l)
			}
		}
		got := transfer.Transaction{Found: "before"}
		c.intent.Judge(&got, in)
		if got.Found != c.want || got.Failed() != (got.State != transfer.Mined) {
			t.Errorf("%s: %s, found %q, want %q", name, got.State, got.Found, c.want)
		}
	}
	reverted := transfer.Transaction{}
	if erc20.Judge(&reverted, transfer.Inclusion{Receipt: evm.Receipt{Logs: []evm.Log{moved(1)}}}); reverted.Found != "" {
		t.Errorf("reverted: %q", reverted.Found)
	}
}
