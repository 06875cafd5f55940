package transfer

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/registry"
)

// deposit is an ERC-20 Transfer to an input settler that no order has used.
type deposit struct {
	token  common.Address
	amount *big.Int
}

// deposits are those of a receipt, in its order.
type deposits []deposit

// depositAt returns what a log shows to be paid to the intent's input settler; ok is false for any other log.
func (i *Intent) depositAt(l evm.Log) (paid deposit, ok bool) {
	if !isTransfer(l) || l.Topics[2] != addressTopic(i.Settlement.InputSettler) {
		return paid, false
	}
	return deposit{l.Address, new(big.Int).SetBytes(l.Data)}, true
}

// withdraws reports whether a log shows that the intent's input settler pays an ERC-20 token.
func (i *Intent) withdraws(l evm.Log) bool {
	return isTransfer(l) && l.Topics[1] == addressTopic(i.Settlement.InputSettler)
}

// movesInput reports whether a log shows a payment of the intent's input token to or by its input settler.
func (i *Intent) movesInput(l evm.Log) bool {
	_, deposited := i.depositAt(l)
	return l.Address == i.input().token && (deposited || i.withdraws(l))
}

func isTransfer(l evm.Log) bool {
	return len(l.Topics) == 3 && l.Topics[0] == erc20Topic && len(l.Data) == word
}

// take uses up the last deposit of at least an input; ok is false without one. A native input leaves no Transfer.
func (d *deposits) take(input deposit) (ok bool) {
	if input.token == (common.Address{}) {
		return true
	}
	for n, paid := range slices.Backward(*d) {
		if paid.token == input.token && paid.amount.Cmp(input.amount) >= 0 {
			*d = slices.Delete(*d, n, n+1)
			return true
		}
	}
	return false
}

// input is what the intent's order takes.
func (i *Intent) input() deposit {
	in := deposit{amount: i.Source.Amount}
	if !registry.Native(i.Source.Token) {
		in.token = common.HexToAddress(i.Source.Token.Address)
	}
	return in
}

// classifyOpen judges the logs of one receipt. An Open is no deposit: some tokens accept a call that pays nothing, and the settler opens the order
// then. So an ERC-20 input needs its Transfer to the settler earlier in the receipt, and each Transfer pays for one Open. An Open of
// openForAndFinalise needs the order's Finalised in its place. What the settler pays on, as that function does, is no deposit any more.
func (i *Intent) classifyOpen(logs []evm.Log) (state State, logIndex int64) {
	state = Mismatch
	settler := common.HexToAddress(i.Settlement.InputSettler)
	var unused deposits
	for _, l := range logs {
		if paid, ok := i.depositAt(l); ok {
			unused = append(unused, paid)
		}
		if i.withdraws(l) {
			unused.take(deposit{l.Address, new(big.Int)})
		}
		if t, ok := i.MatchLog(i.Source.Account.Chain, l); ok && t.Role == RoleOpen {
			if l.Topics[0] == openPaidTopic && i.finalisedIn(logs) || l.Topics[0] == openTopic && unused.take(i.input()) {
				return Mined, t.LogIndex
			}
			return Mismatch, 0
		}
		if e, ok := ParseSettlerEvent(l); ok && e.Role == RoleOpen && l.Address == settler {
			state = OrderMismatch
			for _, in := range openedInputs(l.Data) {
				unused.take(in)
			}
		}
	}
	return state, 0
}

// finalisedIn reports whether the settler has paid out the intent's order in the logs of one receipt.
func (i *Intent) finalisedIn(logs []evm.Log) bool {
	return slices.ContainsFunc(logs, func(l evm.Log) bool {
		t, ok := i.MatchLog(i.Source.Account.Chain, l)
		return ok && t.Role == RoleFinalise
	})
}

// The words of a StandardOrder in the data of Open, which begins with the order's own offset: where the offset of the inputs is, and of how many
// words an input is.
const (
	openOrder   = 1
	openInputs  = openOrder + 6
	inputLength = 2
)

// openedInputs are the inputs of the order in the data of an Open, none where it is not encoded as the settler does.
func openedInputs(data []byte) (inputs []deposit) {
	at := func(n uint64) (number *big.Int, ok bool) {
		if n >= uint64(len(data)/word) {
			return nil, false
		}
		return new(big.Int).SetBytes(data[n*word : (n+1)*word]), true
	}
	offset, ok := at(openInputs)
	if !ok || !offset.IsUint64() || offset.Uint64()%word != 0 || offset.Uint64() > uint64(len(data)) {
		return nil
	}
	first := openOrder + offset.Uint64()/word
	count, ok := at(first)
	if !ok || !count.IsUint64() {
		return nil
	}
	for n := range min(count.Uint64(), uint64(len(data)/word)) {
		id, _ := at(first + 1 + n*inputLength)
		amount, ok := at(first + 2 + n*inputLength)
		if !ok {
			return nil
		}
		inputs = append(inputs, deposit{common.BigToAddress(id), amount})
	}
	return inputs
}
