package transfer_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/registry"
	"intents.internal/core/transfer"
)

// The last moment at which a transaction is handed out leaves an order time to be opened.
func TestIntent_Tx_OnlyWhileSendable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind      transfer.Type
		blockTime time.Duration
		margin    time.Duration
	}{
		"transfer":             {transfer.Transfer, 12 * time.Second, 0},
		"bridge from Ethereum": {transfer.Bridge, 12 * time.Second, 24 * time.Second},
		"swap":                 {transfer.Swap, 3 * time.Second, 6 * time.Second},
		"two seconds a block":  {transfer.Bridge, 2 * time.Second, 5 * time.Second},
		"250 ms a block":       {transfer.Bridge, 250 * time.Millisecond, 5 * time.Second},
		"no time is known":     {transfer.Bridge, 0, 5 * time.Second},
	} {
		for _, status := range allStatuses {
			for after, ahead := range map[time.Duration]bool{-time.Minute: true, -time.Nanosecond: true, 0: false, time.Second: false} {
				intent := newIntent(c.kind)
				intent.Status = status
				tx, err := intent.Tx(transfer.Moment{Now: intent.Deadline.Add(after - c.margin), BlockTime: c.blockTime})
				sendable := ahead && (status == transfer.Created || status == transfer.Submitted)
				if err != nil || sendable != (tx != nil) {
					t.Errorf("%s, %s, %s after the last moment: %+v, %v", name, status, after, tx, err)
				}
			}
		}
	}
}

func TestIntent_Tx(t *testing.T) {
	t.Parallel()
	native := func(kind transfer.Type) *transfer.Intent {
		i := newIntent(kind)
		i.Source.Token.Address = registry.NativeAddress
		return i
	}
	open := func(i *transfer.Intent) []byte { return common.FromHex(wantEncodings(i)["open"]) }
	call := func(i *transfer.Intent, name string) transfer.Call {
		return transfer.Call{To: usdc, Value: new(big.Int), Data: common.FromHex(wantEncodings(i)[name])}
	}
	bridge, nativeBridge, payment := newIntent(transfer.Bridge), native(transfer.Bridge), newIntent(transfer.Transfer)
	for name, c := range map[string]struct {
		intent *transfer.Intent
		want   transfer.Tx
		calls  []transfer.Call
	}{
		"ERC-20 transfer": {intent: payment, want: transfer.Tx{Call: call(payment, "transfer"), Chain: sepolia, From: alice}},
		"native transfer": {
			intent: native(transfer.Transfer), want: transfer.Tx{Call: transfer.Call{To: bob, Value: big.NewInt(1_000_000)}, Chain: sepolia, From: alice},
		},
		"ERC-20 bridge": {
			intent: bridge,
			want: transfer.Tx{
				Call: transfer.Call{To: inputSettler, Value: new(big.Int), Data: open(bridge)}, Chain: sepolia, From: alice,
				Allowances: []transfer.Allowance{{
					Token: bridge.Source.Token, Owner: alice, Spender: inputSettler, Amount: big.NewInt(1_000_000),
					Approve: call(bridge, "approve"), Reset: call(bridge, "reset"),
				}},
			},
			calls: []transfer.Call{call(bridge, "approve")}, // without the reset, which only some allowances need
		},
		"native bridge": {
			intent: nativeBridge,
			want: transfer.Tx{
				Call: transfer.Call{To: inputSettler, Value: big.NewInt(1_000_000), Data: open(nativeBridge)}, Chain: sepolia, From: alice,
			},
		},
	} {
		got, err := c.intent.Tx(transfer.Moment{Now: c.intent.CreatedAt, BlockTime: time.Second})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(&c.want, got, bigInts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(append(c.calls, c.want.Call), got.Calls(), bigInts); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseOrderStatus(t *testing.T) {
	t.Parallel()
	word := func(last byte) []byte { return append(make([]byte, 31), last) }
	for name, c := range map[string]struct {
		returned []byte
		want     transfer.OrderStatus
		ok       bool
	}{
		"none":          {word(0), transfer.OrderNone, true},
		"deposited":     {word(1), transfer.OrderDeposited, true},
		"claimed":       {word(2), transfer.OrderClaimed, true},
		"refunded":      {word(3), transfer.OrderRefunded, true},
		"a fifth":       {word(4), 0, false},
		"a high bit":    {append([]byte{1}, make([]byte, 31)...), 0, false},
		"no contract":   {nil, 0, false},
		"half a word":   {word(1)[16:], 0, false},
		"more than one": {append(word(1), 0), 0, false},
	} {
		if got, ok := transfer.ParseOrderStatus(c.returned); got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %t", name, got, ok)
		}
	}
}
