package transfer

import (
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/chains/evm"
	"intents.internal/core/intent/token"
	"intents.internal/pkg/caip"
)

// The events of an order: Open is ERC-7683's, the others are the settler's. The order id is the second topic of Open and the
// first word of the others' data.
var (
	openTopic     = common.HexToHash("0x3448bbc2203c608599ad448eeb1007cea04b788ac631f9f558e8dd01a3c27b3d")
	filledTopic   = topic("Filled(bytes32,bytes,bytes)")
	settledTopic  = topic("Settled(bytes32,address)")
	refundedTopic = topic("Refunded(bytes32,address)")
	erc20Topic    = topic("Transfer(address,address,uint256)")
)

// SettlerTopics are the first topics of all events that ParseSettlerEvent parses.
var SettlerTopics = []common.Hash{openTopic, filledTopic, settledTopic, refundedTopic}

// ClockSkew is how much earlier than the intent a block's timestamp may be, because chains' clocks differ from the database's.
const ClockSkew = 2 * time.Minute

func topic(signature string) common.Hash { return crypto.Keccak256Hash([]byte(signature)) }

// SettlerEvent is a settler's event about an order.
type SettlerEvent struct {
	Role    Role
	OrderID [32]byte
}

// ParseSettlerEvent parses a log; ok is false if it is not a settler's event.
func ParseSettlerEvent(l evm.Log) (e SettlerEvent, ok bool) {
	if len(l.Topics) == 0 {
		return e, false
	}
	switch l.Topics[0] {
	case openTopic:
		if len(l.Topics) != 2 {
			return e, false
		}
		return SettlerEvent{RoleOpen, l.Topics[1]}, true
	case filledTopic:
		e.Role = RoleFill
	case settledTopic:
		e.Role = RoleSettle
	case refundedTopic:
		e.Role = RoleRefund
	default:
		return e, false
	}
	if len(l.Topics) != 1 || len(l.Data) < 32 {
		return SettlerEvent{}, false
	}
	e.OrderID = [32]byte(l.Data)
	return e, true
}

// MatchLog returns the transaction of the intent that a settler's event on a chain shows. ok is false for an event of another order,
// and for an event from another contract or chain than in the intent's settlement, because anybody can emit events.
func (i *Intent) MatchLog(chain caip.ChainID, l evm.Log) (t Transaction, ok bool) {
	e, ok := ParseSettlerEvent(l)
	if !ok || e.OrderID != i.OrderID || i.Type == Transfer {
		return t, false
	}
	from, settler := i.Source.Account.Chain, i.Settlement.OriginSettler
	if e.Role == RoleFill {
		from, settler = i.Destination.Account.Chain, i.Settlement.DestinationSettler
	}
	if chain != from || l.Address != common.HexToAddress(settler) {
		return t, false
	}
	return Transaction{
		Role: e.Role, Chain: chain, Hash: l.TxHash, State: Mined,
		Block: &Block{Number: l.BlockNumber, Hash: l.BlockHash}, LogIndex: int64(l.Index), //nolint:gosec // an index in a block
	}, true
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
	case i.Type != Transfer:
		return i.classifyOpen(in)
	case i.Predates(in.BlockTime):
		return Mismatch, 0
	case token.Native(i.Source.Token):
		return i.classifyNative(in)
	default:
		return i.classifyERC20(in)
	}
}

// Predates reports whether a block is older than the intent: what happened in it was not meant for the intent.
func (i *Intent) Predates(blockTime time.Time) bool {
	return blockTime.Before(i.CreatedAt.Add(-ClockSkew))
}

func (i *Intent) classifyOpen(in Inclusion) (State, int64) {
	state := Mismatch
	for _, l := range in.Receipt.Logs {
		if t, ok := i.MatchLog(i.Source.Account.Chain, l); ok && t.Role == RoleOpen {
			return Mined, t.LogIndex
		}
		e, ok := ParseSettlerEvent(l)
		if ok && e.Role == RoleOpen && l.Address == common.HexToAddress(i.Settlement.OriginSettler) {
			state = OrderMismatch
		}
	}
	return state, 0
}

// classifyNative compares the transaction itself, because a native transfer emits no log. An internal transfer by a contract
// account is visible in neither.
func (i *Intent) classifyNative(in Inclusion) (State, int64) {
	t, from := in.Transaction, common.HexToAddress(i.Source.Account.Address)
	switch {
	case t.From != from && in.SourceHasCode:
		return Unsupported, 0
	case t.From == from && t.To != nil && *t.To == common.HexToAddress(i.Destination.Account.Address) &&
		t.Value != nil && t.Value.Cmp(i.Source.Amount) == 0 && !in.taken(NoLog):
		return Mined, NoLog
	default:
		return Mismatch, 0
	}
}

func (i *Intent) classifyERC20(in Inclusion) (State, int64) {
	for _, l := range in.Receipt.Logs {
		if i.pays(l) && !in.taken(int64(l.Index)) { //nolint:gosec // an index in a block
			return Mined, int64(l.Index) //nolint:gosec // as above
		}
	}
	return Mismatch, 0
}

// pays reports whether a log is the ERC-20 Transfer event of the transfer: exactly its amount from its source to its destination.
func (i *Intent) pays(l evm.Log) bool {
	return l.Address == common.HexToAddress(i.Source.Token.Address) && len(l.Topics) == 3 && l.Topics[0] == erc20Topic &&
		l.Topics[1] == addressTopic(i.Source.Account.Address) && l.Topics[2] == addressTopic(i.Destination.Account.Address) &&
		len(l.Data) == 32 && new(big.Int).SetBytes(l.Data).Cmp(i.Source.Amount) == 0
}

// addressTopic encodes an address as an indexed argument of an event.
func addressTopic(address string) common.Hash {
	return common.BytesToHash(common.HexToAddress(address).Bytes())
}

func (in Inclusion) taken(logIndex int64) bool {
	return slices.Contains(in.Taken, logIndex)
}

// MatchesReceipt reports whether a receipt, from any provider, still shows what is recorded of the intent's transaction: the same
// block, the same result and the same log.
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
	for _, l := range r.Logs {
		if int64(l.Index) != t.LogIndex { //nolint:gosec // an index in a block
			continue
		}
		seen, ok := i.MatchLog(t.Chain, l)
		return r.Succeeded && (ok && seen.Role == t.Role || t.Role == RoleSend && i.pays(l))
	}
	return false
}
