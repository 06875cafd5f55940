package transfer_test

import (
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/evm"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// outputFilled is the event OutputFilled(orderId, solver, timestamp, output, finalAmount).
type outputFilled struct {
	orderID, solver common.Hash
	timestamp       uint32
	output          abiOutput
	finalAmount     *big.Int
}

// fillOf is the event that fills an intent.
func fillOf(i *transfer.Intent) outputFilled {
	output := abiOf(i).Outputs[0]
	return outputFilled{i.OrderID, padded(bob), 1_800_000_000, output, output.Amount}
}

var filledArguments = abi.Arguments{bytes32Argument, argument("uint32", nil), outputArgument, uint256Argument}

func event(signature string) common.Hash { return crypto.Keccak256Hash([]byte(signature)) }

// log is the event as the output settler emits it.
func (f outputFilled) log() evm.Log {
	return evm.Log{
		Address: common.HexToAddress(outputSettler),
		Topics:  []common.Hash{event("OutputFilled(bytes32,bytes32,uint32," + outputType + ",uint256)"), f.orderID},
		Data:    encode(filledArguments, f.solver, f.timestamp, f.output, f.finalAmount),
		TxHash:  hashA, BlockNumber: block7.Number, BlockHash: block7.Hash, Index: 3,
	}
}

func fillLog(i *transfer.Intent) evm.Log { return fillOf(i).log() }

func TestIntent_MatchLog(t *testing.T) {
	t.Parallel()
	intent := newIntent(transfer.Bridge)
	input, output := common.HexToAddress(inputSettler), common.HexToAddress(outputSettler)
	order := abiOf(intent).encoded()
	for name, c := range map[string]struct {
		signature string
		emitter   common.Address
		chain     caip.ChainID
		data      []byte
		role      transfer.Role // empty for none
	}{
		"open":                           {"Open(bytes32," + orderType + ")", input, sepolia, order, transfer.RoleOpen},
		"finalise":                       {"Finalised(bytes32,bytes32,bytes32)", input, sepolia, make([]byte, 64), transfer.RoleFinalise},
		"refund":                         {"Refunded(bytes32)", input, sepolia, nil, transfer.RoleRefund},
		"fill":                           {"OutputFilled(bytes32,bytes32,uint32," + outputType + ",uint256)", output, baseSepolia, fillLog(intent).Data, transfer.RoleFill},
		"open by the output settler":     {"Open(bytes32," + orderType + ")", output, sepolia, order, ""},
		"open on the destination":        {"Open(bytes32," + orderType + ")", input, baseSepolia, order, ""},
		"refund on the destination":      {"Refunded(bytes32)", input, baseSepolia, nil, ""},
		"refund by the output settler":   {"Refunded(bytes32)", output, baseSepolia, nil, ""},
		"finalise by anybody":            {"Finalised(bytes32,bytes32,bytes32)", common.HexToAddress(alice), sepolia, make([]byte, 64), ""},
		"openForAndFinalise of a bridge": {"Open(bytes32)", input, sepolia, nil, ""},
		"the purchase of an order":       {"OrderPurchased(bytes32,bytes32,bytes32)", input, sepolia, make([]byte, 64), ""},
	} {
		log := evm.Log{
			Address: c.emitter, Topics: []common.Hash{event(c.signature), intent.OrderID}, Data: c.data,
			TxHash: hashA, BlockNumber: block7.Number, BlockHash: block7.Hash, Index: 3,
		}
		want := transfer.Transaction{Role: c.role, Chain: c.chain, Hash: hashA, State: transfer.Mined, Block: block7, LogIndex: 3}
		if c.role == "" {
			want = transfer.Transaction{}
		}
		got, ok := intent.MatchLog(c.chain, log)
		if diff := cmp.Diff(want, got); diff != "" || ok != (c.role != "") {
			t.Errorf("%s: %t (-want +got):\n%s", name, ok, diff)
		}
		log.Topics[1][0]++
		if other, ok := intent.MatchLog(c.chain, log); ok {
			t.Errorf("%s of another order: %+v", name, other)
		}
	}
}

// Anybody can have the output settler emit OutputFilled with any order id and an output of their own.
func TestIntent_MatchLogOfFill(t *testing.T) {
	t.Parallel()
	intent := newIntent(transfer.Bridge)
	for name, c := range map[string]struct {
		alter func(*outputFilled)
		fills bool
	}{
		"nothing":                   {func(*outputFilled) {}, true},
		"another solver":            {func(f *outputFilled) { f.solver = common.Hash{31: 1} }, true},
		"a solver of 32 bytes":      {func(f *outputFilled) { f.solver = common.MaxHash }, true},
		"another timestamp":         {func(f *outputFilled) { f.timestamp = 0 }, true},
		"more is paid":              {func(f *outputFilled) { f.finalAmount = new(big.Int).Lsh(big.NewInt(1), 255) }, true},
		"less is paid":              {func(f *outputFilled) { f.finalAmount = big.NewInt(989_999) }, false},
		"nothing is paid":           {func(f *outputFilled) { f.finalAmount = new(big.Int) }, false},
		"another oracle":            {func(f *outputFilled) { f.output.Oracle = padded(oracle) }, false},
		"another settler":           {func(f *outputFilled) { f.output.Settler = padded(inputSettler) }, false},
		"another chain":             {func(f *outputFilled) { f.output.ChainId = big.NewInt(11155111) }, false},
		"another token":             {func(f *outputFilled) { f.output.Token = padded(weth) }, false},
		"the native token":          {func(f *outputFilled) { f.output.Token = common.Hash{} }, false},
		"an output of less":         {func(f *outputFilled) { f.output.Amount = big.NewInt(1) }, false},
		"an output of more":         {func(f *outputFilled) { f.output.Amount = big.NewInt(990_001) }, false},
		"another recipient":         {func(f *outputFilled) { f.output.Recipient = padded(alice) }, false},
		"bits above the recipient":  {func(f *outputFilled) { f.output.Recipient[0] = 1 }, false},
		"bits above the token":      {func(f *outputFilled) { f.output.Token[11] = 1 }, false},
		"callbackData":              {func(f *outputFilled) { f.output.CallbackData = []byte{0x12, 0x34} }, false},
		"callbackData of one zero":  {func(f *outputFilled) { f.output.CallbackData = []byte{0} }, false},
		"a context of a limit":      {func(f *outputFilled) { f.output.Context = []byte{0} }, false},
		"a context of an exclusive": {func(f *outputFilled) { f.output.Context = append([]byte{0xe0}, make([]byte, 36)...) }, false},
		"both bytes":                {func(f *outputFilled) { f.output.CallbackData, f.output.Context = []byte{1}, []byte{2} }, false},
		"the id of another order":   {func(f *outputFilled) { f.orderID[31]++ }, false},
	} {
		filled := fillOf(intent)
		c.alter(&filled)
		if seen, ok := intent.MatchLog(baseSepolia, filled.log()); ok != c.fills {
			t.Errorf("%s altered: %t, %+v", name, ok, seen)
		}
	}
}

// What was emitted elsewhere, or is encoded in another way than by the settler, fills nothing.
func TestIntent_MatchLogOfFillEncoding(t *testing.T) {
	t.Parallel()
	intent := newIntent(transfer.Bridge)
	for name, alter := range map[string]func(*evm.Log){
		"another contract":        func(l *evm.Log) { l.Address = common.HexToAddress(inputSettler) },
		"no data":                 func(l *evm.Log) { l.Data = nil },
		"a byte too little":       func(l *evm.Log) { l.Data = l.Data[:len(l.Data)-1] },
		"a word too little":       func(l *evm.Log) { l.Data = l.Data[:len(l.Data)-32] },
		"a byte too much":         func(l *evm.Log) { l.Data = append(l.Data, 0) },
		"a word too much":         func(l *evm.Log) { l.Data = append(l.Data, make([]byte, 32)...) },
		"another output's offset": func(l *evm.Log) { l.Data[95] = 0x60 },
		"an offset above 64 bits": func(l *evm.Log) { l.Data[64] = 1 },
		"a third topic":           func(l *evm.Log) { l.Topics = append(l.Topics, common.Hash{}) },
		"no order id":             func(l *evm.Log) { l.Topics = l.Topics[:1] },
		"no topics":               func(l *evm.Log) { l.Topics = nil },
	} {
		log := fillLog(intent)
		alter(&log)
		if seen, ok := intent.MatchLog(baseSepolia, log); ok {
			t.Errorf("%s: %+v", name, seen)
		}
	}
	for _, elsewhere := range []caip.ChainID{sepolia, mainnet, {}} {
		if seen, ok := intent.MatchLog(elsewhere, fillLog(intent)); ok {
			t.Errorf("a fill on %s: %+v", elsewhere, seen)
		}
	}
	transferred := newIntent(transfer.Transfer)
	if seen, ok := transferred.MatchLog(baseSepolia, fillLog(transferred)); ok {
		t.Errorf("a transfer is filled: %+v", seen)
	}
}

func TestIntent_MatchesReceipt(t *testing.T) {
	t.Parallel()
	intent := newIntent(transfer.Bridge)
	log := fillLog(intent)
	seen, ok := intent.MatchLog(baseSepolia, log)
	if !ok {
		t.Fatal("the fill does not match")
	}
	receipt := func(change func(*evm.Receipt)) evm.Receipt {
		r := evm.Receipt{TxHash: hashA, BlockNumber: block7.Number, BlockHash: block7.Hash, Succeeded: true, Logs: []evm.Log{log}}
		change(&r)
		return r
	}
	less := fillOf(intent)
	less.output.Amount = big.NewInt(1)
	refund := log
	refund.Topics = []common.Hash{event("Refunded(bytes32)"), intent.OrderID}
	for name, c := range map[string]struct {
		receipt evm.Receipt
		want    bool
	}{
		"the same":            {receipt(func(*evm.Receipt) {}), true},
		"another block":       {receipt(func(r *evm.Receipt) { r.BlockHash = hashB }), false},
		"another height":      {receipt(func(r *evm.Receipt) { r.BlockNumber++ }), false},
		"another transaction": {receipt(func(r *evm.Receipt) { r.TxHash = hashB }), false},
		"reverted":            {receipt(func(r *evm.Receipt) { r.Succeeded = false }), false},
		"no logs":             {receipt(func(r *evm.Receipt) { r.Logs = nil }), false},
		"another output":      {receipt(func(r *evm.Receipt) { r.Logs = []evm.Log{less.log()} }), false},
		"another event":       {receipt(func(r *evm.Receipt) { r.Logs = []evm.Log{refund} }), false},
		"another index":       {receipt(func(r *evm.Receipt) { r.Logs = slices.Clone(r.Logs); r.Logs[0].Index++ }), false},
	} {
		if got := intent.MatchesReceipt(seen, c.receipt); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Whatever a contract emits, only the data of the intent's own fill match, and nothing panics.
func FuzzIntent_MatchLog(f *testing.F) {
	intent := newIntent(transfer.Bridge)
	fill := fillLog(intent)
	for _, topic := range transfer.SettlerTopics {
		f.Add(topic[:], intent.OrderID[:], fill.Data, 2)
		f.Add(topic[:], intent.OrderID[:], []byte{}, 2)
		f.Add(topic[:], []byte{}, fill.Data[:320], 1)
	}
	f.Fuzz(func(t *testing.T, topic, id, data []byte, topics int) {
		l := evm.Log{Address: fill.Address, Data: data}
		for _, word := range [][]byte{topic, id, id, id}[:max(0, topics%5)] {
			l.Topics = append(l.Topics, common.BytesToHash(word))
		}
		e, ok := transfer.ParseSettlerEvent(l)
		if ok != (len(l.Topics) == 2 && slices.Contains(transfer.SettlerTopics, l.Topics[0])) || ok && e.OrderID != l.Topics[1] {
			t.Errorf("%+v is parsed as %+v, %t", l, e, ok)
		}
		if _, ok := intent.MatchLog(baseSepolia, l); ok {
			// Solver, timestamp and a larger final amount are the solver's own.
			same := slices.Concat(data[:64], fill.Data[64:96], data[96:128], fill.Data[128:])
			if e.Role != transfer.RoleFill || !slices.Equal(same, data) || new(big.Int).SetBytes(data[96:128]).Cmp(intent.Destination.Amount) < 0 {
				t.Errorf("a fill: %x", data)
			}
		}
	})
}
