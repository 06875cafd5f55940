package transfer_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
)

// opened is the event that opens an intent's order.
func opened(i *transfer.Intent) evm.Log {
	return evm.Log{
		Address: common.HexToAddress(inputSettler), Topics: []common.Hash{event("Open(bytes32," + orderType + ")"), i.OrderID},
		Data: abiOf(i).encoded(),
	}
}

// paidTo is a Transfer of USDC to an account.
func paidTo(to string, amount int64) evm.Log {
	return evm.Log{
		Address: common.HexToAddress(usdc), Topics: []common.Hash{event("Transfer(address,address,uint256)"), padded(bob), padded(to)},
		Data: common.BigToHash(big.NewInt(amount)).Bytes(),
	}
}

// An order's attempt is judged by the events of its input settler. An Open is no deposit: an ERC-20 input needs its own Transfer before it.
func TestIntent_ClassifyOpen(t *testing.T) {
	t.Parallel()
	intent, next, native := newIntent(transfer.Bridge), newIntent(transfer.Bridge), newIntent(transfer.Bridge)
	next.OrderID = hashB
	native.Source.Token.Address = registry.NativeAddress
	open, other, paid := opened(intent), opened(next), paidTo(inputSettler, 1_000_000)
	of := func(l evm.Log, change func(*evm.Log)) evm.Log {
		l.Topics = append([]common.Hash{}, l.Topics...)
		change(&l)
		return l
	}
	foreign := of(other, func(l *evm.Log) { l.Address = common.HexToAddress(alice) })
	two := abiOf(next)
	two.Inputs = append(two.Inputs, two.Inputs[0])
	otherOfTwo := of(other, func(l *evm.Log) { l.Data = two.encoded() })
	nativeOther := of(other, func(l *evm.Log) { l.Data = abiOf(native).encoded() })
	for name, c := range map[string]struct {
		logs  []evm.Log
		want  transfer.State
		index int64
	}{
		"opened":                              {[]evm.Log{paid, open}, transfer.Mined, 1},
		"no event":                            {nil, transfer.Mismatch, 0},
		"another settler":                     {[]evm.Log{paid, foreign}, transfer.Mismatch, 0},
		"another order":                       {[]evm.Log{paid, other}, transfer.OrderMismatch, 0},
		"paid by nobody":                      {[]evm.Log{open}, transfer.Mismatch, 0},
		"paid afterwards":                     {[]evm.Log{open, paid}, transfer.Mismatch, 0},
		"paid more":                           {[]evm.Log{paidTo(inputSettler, 1_000_001), open}, transfer.Mined, 1},
		"paid less":                           {[]evm.Log{paidTo(inputSettler, 999_999), open}, transfer.Mismatch, 0},
		"paid in two parts":                   {[]evm.Log{paidTo(inputSettler, 500_000), paidTo(inputSettler, 500_000), open}, transfer.Mismatch, 0},
		"paid to another":                     {[]evm.Log{paidTo(bob, 1_000_000), open}, transfer.Mismatch, 0},
		"another token":                       {[]evm.Log{of(paid, func(l *evm.Log) { l.Address = common.HexToAddress(weth) }), open}, transfer.Mismatch, 0},
		"another event of the token":          {[]evm.Log{of(paid, func(l *evm.Log) { l.Topics[0] = event("Approval(address,address,uint256)") }), open}, transfer.Mismatch, 0},
		"a token id in place of an amount":    {[]evm.Log{of(paid, func(l *evm.Log) { l.Topics, l.Data = append(l.Topics, hashA), nil }), open}, transfer.Mismatch, 0},
		"both of two orders are paid":         {[]evm.Log{paid, other, paid, open}, transfer.Mined, 3},
		"both are paid before":                {[]evm.Log{paid, paid, other, open}, transfer.Mined, 3},
		"the other order's deposit":           {[]evm.Log{paid, other, open}, transfer.Mismatch, 0},
		"the deposit before the other order":  {[]evm.Log{paid, open, other}, transfer.Mined, 1},
		"the other order has two inputs":      {[]evm.Log{paid, paid, otherOfTwo, open}, transfer.Mismatch, 0},
		"the other order's input is native":   {[]evm.Log{paid, nativeOther, open}, transfer.Mined, 2},
		"another settler's order takes none":  {[]evm.Log{paid, foreign, open}, transfer.Mined, 2},
		"the other order is not encoded":      {[]evm.Log{paid, of(other, func(l *evm.Log) { l.Data = l.Data[:100] }), open}, transfer.Mined, 2},
		"the other order has endless inputs":  {[]evm.Log{paid, of(other, func(l *evm.Log) { l.Data = endlessInputs(l.Data) }), open}, transfer.Mined, 2},
		"the other order's inputs are beyond": {[]evm.Log{paid, of(other, func(l *evm.Log) { l.Data = farInputs(l.Data) }), open}, transfer.Mined, 2},
	} {
		for n := range c.logs {
			c.logs[n].Index = uint(n)
		}
		receipt := evm.Receipt{Succeeded: true, Logs: c.logs, TxHash: hashA, BlockNumber: 7, BlockHash: block7.Hash}
		if state, index := intent.Classify(transfer.Inclusion{Receipt: receipt}); state != c.want || index != c.index {
			t.Errorf("%s: %s at log %d", name, state, index)
		}
		seen := transfer.Transaction{Role: transfer.RoleOpen, Chain: sepolia, Hash: hashA, State: transfer.Mined, Block: block7, LogIndex: c.index}
		if same := intent.MatchesReceipt(seen, receipt); same != (c.want == transfer.Mined) {
			t.Errorf("%s: another provider's receipt shows an opened order: %t", name, same)
		}
	}
	if state, _ := intent.Classify(transfer.Inclusion{Receipt: evm.Receipt{Logs: []evm.Log{paid, open}}}); state != transfer.Reverted {
		t.Errorf("reverted: %s", state)
	}
	native.OrderID = hashC
	if state, _ := native.Classify(transfer.Inclusion{Receipt: evm.Receipt{Succeeded: true, Logs: []evm.Log{opened(native)}}}); state != transfer.Mined {
		t.Errorf("a native input leaves no Transfer: %s", state)
	}
}

// openForAndFinalise, for orders on one chain, pays the input elsewhere: its Open needs the order's Finalised in the same receipt.
func TestIntent_ClassifyOpenAndFinalised(t *testing.T) {
	t.Parallel()
	intent := newIntent(transfer.Swap)
	log := func(signature string, change func(*evm.Log)) evm.Log {
		l := evm.Log{Address: common.HexToAddress(inputSettler), Topics: []common.Hash{event(signature), intent.OrderID}}
		change(&l)
		return l
	}
	same := func(*evm.Log) {}
	other := func(l *evm.Log) { l.Topics[1] = hashB }
	foreign := func(l *evm.Log) { l.Address = common.HexToAddress(alice) }
	const opening, finalising = "Open(bytes32)", "Finalised(bytes32,bytes32,bytes32)"
	if topic := event(opening); topic != common.HexToHash("0xddffb592d6434d02d388cf2eb4fbfa796fbfcd09e278d3466e7194dfd3c23a04") {
		t.Errorf("topic %s", topic)
	}
	open, finalised, paid, paidOn := log(opening, same), log(finalising, same), paidTo(inputSettler, 1_000_000), paidTo(bob, 999_000)
	paidOn.Topics[1] = padded(inputSettler)
	otherOpen, otherFinalised := log(opening, other), log(finalising, other)
	for name, c := range map[string]struct {
		logs  []evm.Log
		want  transfer.State
		index int64
	}{
		"opened and finalised":        {[]evm.Log{open, paidTo(bob, 1_000_000), finalised}, transfer.Mined, 0},
		"not finalised":               {[]evm.Log{open}, transfer.Mismatch, 0},
		"a deposit is no Finalised":   {[]evm.Log{paid, open}, transfer.Mismatch, 0},
		"another order is finalised":  {[]evm.Log{open, log(finalising, other)}, transfer.Mismatch, 0},
		"finalised by anybody":        {[]evm.Log{open, log(finalising, foreign)}, transfer.Mismatch, 0},
		"another order":               {[]evm.Log{otherOpen, otherFinalised}, transfer.OrderMismatch, 0},
		"opened by anybody":           {[]evm.Log{log(opening, foreign), finalised}, transfer.Mismatch, 0},
		"Finalised is no deposit":     {[]evm.Log{opened(intent), finalised}, transfer.Mismatch, 0},
		"the order before is another": {[]evm.Log{otherOpen, open, finalised}, transfer.Mined, 1},
		"the other order's input":     {[]evm.Log{otherOpen, paid, paidOn, otherFinalised, opened(intent)}, transfer.Mismatch, 0},
		"an input of its own":         {[]evm.Log{otherOpen, paid, paidOn, otherFinalised, paid, opened(intent)}, transfer.Mined, 5},
		"paid on afterwards":          {[]evm.Log{paid, opened(intent), paidOn}, transfer.Mined, 1},
		"an older order is paid out":  {[]evm.Log{paidOn, otherFinalised, paid, opened(intent)}, transfer.Mined, 3},
	} {
		for n := range c.logs {
			c.logs[n].Index = uint(n)
			if !intent.Concerns(c.logs[n]) && c.logs[n].Address == common.HexToAddress(inputSettler) && c.logs[n].Topics[1] == intent.OrderID {
				t.Errorf("%s: log %d does not concern the intent", name, n)
			}
		}
		receipt := evm.Receipt{Succeeded: true, Logs: c.logs, TxHash: hashA, BlockNumber: 7, BlockHash: block7.Hash}
		if state, index := intent.Classify(transfer.Inclusion{Receipt: receipt}); state != c.want || index != c.index {
			t.Errorf("%s: %s at log %d", name, state, index)
		}
	}
}

// endlessInputs and farInputs are the data of an Open whose inputs are more, or further away, than the data.
func endlessInputs(data []byte) []byte { return withWord(data, 9, 255) }
func farInputs(data []byte) []byte     { return withWord(data, 7, 255) }

func withWord(data []byte, n int, b byte) []byte {
	data = append([]byte{}, data...)
	for at := n * 32; at < (n+1)*32; at++ {
		data[at] = b
	}
	return data
}

// Of the recorded orders exactly those whose settler got the whole input count as opened: not those of WETH9, which takes any call and pays nothing.
func TestIntent_RecordedDeposits(t *testing.T) {
	t.Parallel()
	type account struct{ settler, token string }
	balances, states := map[account]*big.Int{}, map[transfer.State]int{}
	for _, c := range recordedGasless(t).Cases {
		for _, step := range c.Steps {
			if step.After == nil {
				continue
			}
			at := account{c.Settler, c.Order.Inputs[0][0]}
			before, balance := balances[at], bigInt(step.After.SettlerBalance)
			balances[at] = balance
			if step.Step != "openFor" || step.Status != 1 {
				continue
			}
			if before == nil {
				before = new(big.Int)
			}
			shown := recordedCase{OrderID: c.OrderID, Order: c.Order, Encoded: c.Order.abi().encoded(), Steps: []recordedStep{{Status: 1, Logs: step.Logs}}}
			intent := c.Order.intent(step.To)
			intent.OrderID = c.OrderID
			want := transfer.Mined
			if new(big.Int).Sub(balance, before).Cmp(intent.Source.Amount) < 0 {
				want = transfer.Mismatch
			}
			state, _ := intent.Classify(transfer.Inclusion{Receipt: shown.receipt(0)})
			if state != want {
				t.Errorf("%s: %s, want %s", c.Name, state, want)
			}
			states[state]++
		}
	}
	if states[transfer.Mined] != 18 || states[transfer.Mismatch] != 3 {
		t.Errorf("orders by state: %v", states)
	}
}
