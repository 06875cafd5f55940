package transfer_test

import (
	"encoding/hex"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/intent/transfer"
	"intents.internal/pkg/caip"
)

func TestPreflight(t *testing.T) {
	t.Parallel()
	const token, native = "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
	swap := &transfer.Intent{
		Type: transfer.Swap, Source: leg(caip.EIP155Chain(1), "0x01", token, "5"), Deadline: noon,
		Settlement: transfer.Settlement{OriginDomain: 7, OriginSettler: "0x02"},
	}
	payment := &transfer.Intent{Type: transfer.Transfer, Source: leg(caip.EIP155Chain(1), "0x01", token, "5"), Deadline: noon}
	ether := &transfer.Intent{Type: transfer.Transfer, Source: leg(caip.EIP155Chain(1), "0x01", native, "5"), Deadline: noon}
	open := &transfer.Tx{Allowances: []transfer.Allowance{{}}}
	good := func(change func(*transfer.Simulation)) transfer.Simulation {
		s := transfer.Simulation{Balance: big.NewInt(9), Allowance: big.NewInt(5), SettlerHasCode: true, SettlerDomain: big.NewInt(7)}
		if change != nil {
			change(&s)
		}
		return s
	}
	for name, c := range map[string]struct {
		intent     *transfer.Intent
		tx         *transfer.Tx
		simulation transfer.Simulation
		check      int
		ok         bool
		detail     string
	}{
		"balance":            {swap, open, good(nil), 0, true, "The account has 9 units of the token, and the transaction needs 5."},
		"too little":         {swap, open, good(func(s *transfer.Simulation) { s.Balance = big.NewInt(4) }), 0, false, "The account has 4 units of the token, and the transaction needs 5."},
		"no balance":         {swap, open, good(func(s *transfer.Simulation) { s.Balance = nil }), 0, false, "The token's contract does not tell the account's balance."},
		"ether":              {ether, &transfer.Tx{}, good(nil), 0, true, "The account has 9 wei, and the transaction needs 5 and its gas."},
		"too little ether":   {ether, &transfer.Tx{}, good(func(s *transfer.Simulation) { s.Balance = big.NewInt(4) }), 0, false, "The account has 4 wei, and the transaction needs 5 and its gas."},
		"allowance":          {swap, open, good(nil), 1, true, "The settler may draw 5 units of the token, and the transaction needs 5."},
		"small allowance":    {swap, open, good(func(s *transfer.Simulation) { s.Allowance = big.NewInt(4) }), 1, false, "The settler may draw 4 units of the token, and the transaction needs 5; send the approval in tx.allowances first."},
		"unknown allowance":  {swap, open, good(func(s *transfer.Simulation) { s.Allowance = nil }), 1, false, "The token's contract does not tell the settler's allowance."},
		"unneeded allowance": {payment, &transfer.Tx{}, good(func(s *transfer.Simulation) { s.Allowance = nil }), 1, true, "An allowance is not needed."},
		"deadline":           {swap, open, good(nil), 2, true, "The deadline is 1m30s ahead."},
		"settler":            {swap, open, good(nil), 3, true, "The settler serves the order's domain 7."},
		"no contract":        {swap, open, good(func(s *transfer.Simulation) { s.SettlerHasCode = false }), 3, false, "There is no contract at the settler's address 0x02."},
		"no settler":         {swap, open, good(func(s *transfer.Simulation) { s.SettlerDomain = nil }), 3, false, "The contract at 0x02 does not tell its domain, so it is no settler that this service knows."},
		"another domain":     {swap, open, good(func(s *transfer.Simulation) { s.SettlerDomain = big.NewInt(8) }), 3, false, "The settler serves the domain 8, and the order names 7."},
		"unneeded settler":   {payment, &transfer.Tx{}, transfer.Simulation{}, 3, true, "A settler is not needed."},
		"simulation":         {swap, open, good(nil), 4, true, "The transaction succeeds at the newest block."},
		"failure":            {swap, open, good(func(s *transfer.Simulation) { s.Failure = "It fails." }), 4, false, "It fails."},
		"failure without allowance": {
			swap, open, good(func(s *transfer.Simulation) { s.Failure, s.Allowance = "It fails.", big.NewInt(4) }), 4, false,
			"The order cannot be opened before the allowance is in place; grant it, then check again.",
		},
		"false":        {payment, &transfer.Tx{}, good(func(s *transfer.Simulation) { s.Returned = make([]byte, 32) }), 4, false, "The token refuses the transfer: it returns false."},
		"true":         {payment, &transfer.Tx{}, good(func(s *transfer.Simulation) { s.Returned = append(make([]byte, 31), 1) }), 4, true, "The transaction succeeds at the newest block."},
		"no bool":      {payment, &transfer.Tx{}, good(nil), 4, true, "The transaction succeeds at the newest block."},
		"a swap's own": {swap, open, good(func(s *transfer.Simulation) { s.Returned = make([]byte, 32) }), 4, true, "The transaction succeeds at the newest block."},
	} {
		names := []transfer.CheckName{"balance", "allowance", "deadline", "settler", "simulation"}
		got := c.intent.Preflight(c.tx, c.simulation, noon.Add(-90*time.Second))
		if diff := cmp.Diff(transfer.Check{Name: names[c.check], OK: c.ok, Detail: c.detail}, got[c.check]); diff != "" || len(got) != len(names) {
			t.Errorf("%s, of %d checks (-want +got):\n%s", name, len(got), diff)
		}
	}
	if late := swap.Preflight(open, good(nil), noon)[2]; late.OK || late.Detail != "The deadline has passed." {
		t.Errorf("late: %+v", late)
	}
}

func TestRevertReason(t *testing.T) {
	t.Parallel()
	const text = "08c379a0" + "0000000000000000000000000000000000000000000000000000000000000020"
	for name, c := range map[string]struct{ data, message, want string }{
		"Error": {
			text + "0000000000000000000000000000000000000000000000000000000000000006" + hex.EncodeToString([]byte("no way")) + strings.Repeat("00", 26), "",
			`The transaction reverts with the text "no way".`,
		},
		"Error with controls": {
			text + "0000000000000000000000000000000000000000000000000000000000000004" + "0a22ff61" + strings.Repeat("00", 28), "",
			`The transaction reverts with the text "\"a".`,
		},
		"Error cut off":     {text, "", "The transaction reverts with the error 0x08c379a0."},
		"Panic":             {"4e487b71" + strings.Repeat("0", 62) + "11", "", "The transaction reverts with a panic: arithmetic underflow or overflow."},
		"another panic":     {"4e487b71" + strings.Repeat("0", 62) + "ff", "", "The transaction reverts with a panic: unknown panic code: 0xff."},
		"InvalidNonce":      {"756688fe", "", "The transaction reverts, because the settler has used the order's nonce: the order was opened before, or its nonce was invalidated."},
		"token balance":     {"e450d38c" + strings.Repeat("0", 192), "", "The transaction reverts, because the account has too little of the token."},
		"token allowance":   {"fb8f41b2" + strings.Repeat("0", 192), "", "The transaction reverts, because the allowance is too small."},
		"SafeERC20":         {"5274afe7" + strings.Repeat("0", 64), "", "The transaction reverts, because the token refuses to be moved."},
		"unknown error":     {"deadbeef01", "execution reverted: this is not used", "The transaction reverts with the error 0xdeadbeef."},
		"no data":           {"", "execution reverted", "The transaction reverts without a reason."},
		"the node's words":  {"", "execution reverted: no way", `The transaction reverts with the text "no way".`},
		"too short":         {"756688", "", "The transaction reverts without a reason."},
		"other words":       {"", "VM Exception", "The transaction reverts without a reason."},
		"Error of 1000 a's": {text + strings.Repeat("0", 61) + "3e8" + strings.Repeat("61", 1024), "", `The transaction reverts with the text "` + strings.Repeat("a", 200) + `".`},
	} {
		data, err := hex.DecodeString(c.data)
		if err != nil {
			t.Fatal(err)
		}
		if got := transfer.RevertReason(data, c.message); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func FuzzRevertReason(f *testing.F) {
	f.Add([]byte{0x08, 0xc3, 0x79, 0xa0}, "execution reverted: \xff\n")
	f.Fuzz(func(t *testing.T, data []byte, message string) {
		for _, got := range []string{transfer.RevertReason(data, message), transfer.NodeRefusal(message)} {
			if !utf8.ValidString(got) || len(got) > 1000 || strings.ContainsAny(got, "\n\r\x00") || !strings.HasSuffix(got, ".") {
				t.Errorf("%q", got)
			}
		}
	})
}
