package transfer_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
)

// A transfer's attempt is judged by the token's event, or by the transaction itself for the native token.
func TestIntent_ClassifyTransfer(t *testing.T) {
	t.Parallel()
	erc20, native := newIntent(transfer.Transfer), newIntent(transfer.Transfer)
	native.Source.Token.Address = registry.NativeAddress
	word := func(n int64) []byte { return common.BigToHash(big.NewInt(n)).Bytes() }
	paid := func(change func(*evm.Log)) transfer.Inclusion {
		l := evm.Log{
			Address: common.HexToAddress(usdc), Topics: []common.Hash{event("Transfer(address,address,uint256)"), padded(alice), padded(bob)},
			Data: word(1_000_000), Index: 4,
		}
		change(&l)
		return transfer.Inclusion{Receipt: evm.Receipt{Succeeded: true, Logs: []evm.Log{l}}, BlockTime: erc20.CreatedAt}
	}
	to := common.HexToAddress(bob)
	sent := func(change func(*transfer.Inclusion)) transfer.Inclusion {
		in := transfer.Inclusion{
			Receipt: evm.Receipt{Succeeded: true}, BlockTime: native.CreatedAt,
			Transaction: evm.Transaction{From: common.HexToAddress(alice), To: &to, Value: big.NewInt(1_000_000)},
		}
		change(&in)
		return in
	}
	with := func(in transfer.Inclusion, change func(*transfer.Inclusion)) transfer.Inclusion {
		change(&in)
		return in
	}
	arrived := paid(func(*evm.Log) {})
	for name, c := range map[string]struct {
		intent *transfer.Intent
		in     transfer.Inclusion
		want   transfer.State
		index  int64
	}{
		"paid":                        {erc20, arrived, transfer.Mined, 4},
		"paid to another":             {erc20, paid(func(l *evm.Log) { l.Topics[2] = padded(alice) }), transfer.Mismatch, 0},
		"paid by another":             {erc20, paid(func(l *evm.Log) { l.Topics[1] = padded(bob) }), transfer.Mismatch, 0},
		"another token":               {erc20, paid(func(l *evm.Log) { l.Address = common.HexToAddress(weth) }), transfer.Mismatch, 0},
		"another event":               {erc20, paid(func(l *evm.Log) { l.Topics[0] = event("Approval(address,address,uint256)") }), transfer.Mismatch, 0},
		"less, after a fee":           {erc20, paid(func(l *evm.Log) { l.Data = word(999_999) }), transfer.Mismatch, 0},
		"more":                        {erc20, paid(func(l *evm.Log) { l.Data = word(1_000_001) }), transfer.Mismatch, 0},
		"that of another intent":      {erc20, with(arrived, func(in *transfer.Inclusion) { in.Taken = []int64{4} }), transfer.Mismatch, 0},
		"as old as clocks differ":     {erc20, with(arrived, func(in *transfer.Inclusion) { in.BlockTime = in.BlockTime.Add(-transfer.ClockSkew) }), transfer.Mined, 4},
		"older":                       {erc20, with(arrived, func(in *transfer.Inclusion) { in.BlockTime = in.BlockTime.Add(-transfer.ClockSkew - time.Second) }), transfer.Mismatch, 0},
		"native":                      {native, sent(func(*transfer.Inclusion) {}), transfer.Mined, transfer.NoLog},
		"native, reverted":            {native, sent(func(in *transfer.Inclusion) { in.Receipt.Succeeded = false }), transfer.Reverted, 0},
		"native, another amount":      {native, sent(func(in *transfer.Inclusion) { in.Transaction.Value = big.NewInt(1) }), transfer.Mismatch, 0},
		"native, a new contract":      {native, sent(func(in *transfer.Inclusion) { in.Transaction.To = nil }), transfer.Mismatch, 0},
		"native, by another account":  {native, sent(func(in *transfer.Inclusion) { in.Transaction.From = to }), transfer.Mismatch, 0},
		"native, by a contract":       {native, sent(func(in *transfer.Inclusion) { in.Transaction.From, in.SourceHasCode = to, true }), transfer.Unsupported, 0},
		"native, of another intent":   {native, sent(func(in *transfer.Inclusion) { in.Taken = []int64{transfer.NoLog} }), transfer.Mismatch, 0},
		"native, for an ERC-20 token": {erc20, sent(func(*transfer.Inclusion) {}), transfer.Mismatch, 0},
	} {
		if state, index := c.intent.Classify(c.in); state != c.want || index != c.index {
			t.Errorf("%s: %s at log %d", name, state, index)
		}
	}
}
