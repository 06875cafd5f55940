package transfer

import (
	"bytes"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/evm"
	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

// The events of an order. The order id is the second topic of those of the settlers.
var (
	openTopic = topic("Open(bytes32," + standardOrder + ")")
	// openPaidTopic is of openForAndFinalise of LI.FI's settlers, for orders on one chain: the settler passes the input on to whom the solver names,
	// and emits Finalised in the same transaction.
	openPaidTopic  = topic("Open(bytes32)")
	finalisedTopic = topic("Finalised(bytes32,bytes32,bytes32)")
	refundedTopic  = topic("Refunded(bytes32)")
	filledTopic    = topic("OutputFilled(bytes32,bytes32,uint32," + mandateOutput + ",uint256)")
	erc20Topic     = topic("Transfer(address,address,uint256)")
)

// SettlerTopics are the first topics of all events that ParseSettlerEvent parses.
var SettlerTopics = []common.Hash{openTopic, openPaidTopic, finalisedTopic, refundedTopic, filledTopic}

var settlerRoles = map[common.Hash]Role{
	openTopic: RoleOpen, openPaidTopic: RoleOpen, finalisedTopic: RoleFinalise, refundedTopic: RoleRefund, filledTopic: RoleFill,
}

// MaxEventData is more than the data of any event of an order that an intent makes: its callback data and context are empty.
const MaxEventData = 4 << 10

// ClockSkew is how much earlier than the intent a block's timestamp may be, because chains' clocks differ from the database's.
const ClockSkew = 2 * time.Minute

func topic(signature string) common.Hash { return crypto.Keccak256Hash([]byte(signature)) }

// SettlerEvent is a settler's event about an order.
type SettlerEvent struct {
	Role    Role
	OrderID [32]byte
}

// ParseSettlerEvent parses a log; ok is false if it is not a settler's event. What a fill paid is in the log's data: see MatchLog.
func ParseSettlerEvent(l evm.Log) (e SettlerEvent, ok bool) {
	if len(l.Topics) != 2 {
		return e, false
	}
	role, ok := settlerRoles[l.Topics[0]]
	return SettlerEvent{role, l.Topics[1]}, ok
}

// MatchLog returns the transaction of the intent that a settler's event on a chain shows. ok is false for an event of another order, for
// an event from another contract or chain than in the intent's settlement, because anybody can emit events, and for a fill of another
// output or of less: anybody can have the real settler emit OutputFilled for any order id with an output of their own. An opening still needs its
// deposit: see Classify.
func (i *Intent) MatchLog(chain caip.ChainID, l evm.Log) (t Transaction, ok bool) {
	e, ok := ParseSettlerEvent(l)
	if !ok || e.OrderID != i.OrderID || !i.HasOrder() {
		return t, false
	}
	from, settler := i.Source.Account.Chain, i.Settlement.InputSettler
	if e.Role == RoleFill {
		from, settler = i.Destination.Account.Chain, i.Settlement.OutputSettler
	}
	if chain != from || l.Address != common.HexToAddress(settler) || e.Role == RoleFill && !i.fills(l.Data) ||
		l.Topics[0] == openPaidTopic && i.Type != Swap {
		return t, false
	}
	return Transaction{
		Role: e.Role, Chain: chain, Hash: l.TxHash, State: Mined,
		Block: &Block{Number: l.BlockNumber, Hash: l.BlockHash}, LogIndex: int64(l.Index), //nolint:gosec // an index in a block
	}, true
}

// filledHead is the number of words before the output in the data of OutputFilled: solver, timestamp, the output's offset, finalAmount.
const filledHead = 4

// Concerns reports whether a log of a receipt can decide about the intent: its payment or one of another amount, an event of its order, the
// opening of another order at its settler, or a payment of its token to or by the settler. Judge and MatchesReceipt need no others.
func (i *Intent) Concerns(l evm.Log) bool {
	if !i.HasOrder() {
		_, ends := i.MatchAuthorization(l)
		return ends || i.moves(l)
	}
	e, ok := ParseSettlerEvent(l)
	settler := common.HexToAddress(i.Settlement.InputSettler)
	return i.movesInput(l) || ok && (e.OrderID == i.OrderID || e.Role == RoleOpen && l.Address == settler)
}

// fills reports whether the data of OutputFilled are of the intent's output, in all of its fields, and of at least its amount. Who the
// solver is and when it filled is the solver's own word.
func (i *Intent) fills(data []byte) bool {
	if len(data) != (filledHead+outputWords)*word {
		return false
	}
	order, err := i.Order()
	if err != nil {
		return false
	}
	uint256 := func(n int) *big.Int { return new(big.Int).SetBytes(data[n*word : (n+1)*word]) }
	return uint256(2).Cmp(big.NewInt(filledHead*word)) == 0 && uint256(3).Cmp(order.Output.Amount) >= 0 &&
		bytes.Equal(data[filledHead*word:], order.output())
}

// Inclusion is an attempt that was found in a block.
type Inclusion struct {
	Receipt evm.Receipt
	// Transaction is needed only for native transfers.
	Transaction evm.Transaction
	BlockTime   time.Time
	// SourceHasCode means that the source account is a contract.
	SourceHasCode bool
	// Taken are the log indexes of this transaction that already confirm other intents of the account: one payment confirms one
	// intent.
	Taken []int64
}

// Classify looks for the intent's effect in an attempt that is in a block. The state is Mined, with the log index of the
// effect, or the reason why the effect is missing. Tokens that take a fee on transfers deliver less than the intent asks for,
// which is a mismatch.
func (i *Intent) Classify(in Inclusion) (state State, logIndex int64) {
	switch {
	case !in.Receipt.Succeeded:
		return Reverted, 0
	case i.HasOrder():
		return i.classifyOpen(in.Receipt.Logs)
	case i.Type != Transfer: // of a scheme whose events are not known
		return Unsupported, 0
	case i.Predates(in.BlockTime):
		return Mismatch, 0
	case registry.Native(i.Source.Token):
		return i.classifyNative(in)
	default:
		return i.classifyERC20(in)
	}
}

// Predates reports whether a block is older than the intent: what happened in it was not meant for the intent.
func (i *Intent) Predates(blockTime time.Time) bool {
	return blockTime.Before(i.CreatedAt.Add(-ClockSkew))
}

// classifyNative compares the transaction itself, because a native transfer emits no log. An internal transfer by a contract
// account is visible in neither.
func (i *Intent) classifyNative(in Inclusion) (State, int64) {
	t, from := in.Transaction, common.HexToAddress(i.Source.Account.Address)
	switch {
	case t.From != from && in.SourceHasCode:
		return Unsupported, 0
	case i.sends(t) && t.Value != nil && t.Value.Cmp(i.Source.Amount) == 0 && !in.taken(NoLog):
		return Mined, NoLog
	default:
		return Mismatch, 0
	}
}

// sends reports whether a native transfer is from the source account to the destination account.
func (i *Intent) sends(t evm.Transaction) bool {
	return t.From == common.HexToAddress(i.Source.Account.Address) && t.To != nil && *t.To == common.HexToAddress(i.Destination.Account.Address)
}

// classifyERC20 looks for the payment. That of an intent which is signed stands with the use of its own authorization: another payment of the
// same amount is another intent's, or none that the signature has made.
func (i *Intent) classifyERC20(in Inclusion) (State, int64) {
	logs := in.Receipt.Logs
	if i.Signing.Scheme != "" {
		used := slices.IndexFunc(logs, func(l evm.Log) bool { end, ok := i.MatchAuthorization(l); return ok && end == AuthorizationUsed })
		if used < 0 {
			return Mismatch, 0
		}
		logs = slices.Concat(logs[used:], logs[:used]) // tokens tell of the use first
	}
	for _, l := range logs {
		if i.pays(l) && !in.taken(int64(l.Index)) { //nolint:gosec // an index in a block
			return Mined, int64(l.Index) //nolint:gosec // as above
		}
	}
	return Mismatch, 0
}

// pays reports whether a log is the ERC-20 Transfer event of the transfer: exactly its amount from its source to its destination.
func (i *Intent) pays(l evm.Log) bool {
	return i.moves(l) && new(big.Int).SetBytes(l.Data).Cmp(i.Source.Amount) == 0
}

// moves reports whether a log is a Transfer event of the transfer's token from its source to its destination, of whatever amount.
func (i *Intent) moves(l evm.Log) bool {
	return l.Address == common.HexToAddress(i.Source.Token.Address) && len(l.Topics) == 3 && l.Topics[0] == erc20Topic &&
		l.Topics[1] == addressTopic(i.Source.Account.Address) && l.Topics[2] == addressTopic(i.Destination.Account.Address) &&
		len(l.Data) == 32
}

// addressTopic encodes an address as an indexed argument of an event.
func addressTopic(address string) common.Hash {
	return common.BytesToHash(common.HexToAddress(address).Bytes())
}

func (in Inclusion) taken(logIndex int64) bool {
	return slices.Contains(in.Taken, logIndex)
}

// MatchesReceipt reports whether a receipt, from any provider, still shows what is recorded of the intent's transaction: the same
// block, the same result and the same log, for an opened order with its deposit.
func (i *Intent) MatchesReceipt(t Transaction, r evm.Receipt) bool {
	if t.Block == nil || r.TxHash != t.Hash || r.BlockHash != t.Block.Hash || r.BlockNumber != t.Block.Number {
		return false
	}
	if t.State != Mined {
		return r.Succeeded == (t.State != Reverted)
	}
	if t.LogIndex == NoLog {
		return r.Succeeded
	}
	if t.Role == RoleOpen {
		state, index := i.classifyOpen(r.Logs)
		return r.Succeeded && state == Mined && index == t.LogIndex
	}
	for _, l := range r.Logs {
		if int64(l.Index) != t.LogIndex { //nolint:gosec // an index in a block
			continue
		}
		seen, ok := i.MatchLog(t.Chain, l)
		return r.Succeeded && (ok && seen.Role == t.Role || t.Role == RoleSend && i.pays(l))
	}
	return false
}
