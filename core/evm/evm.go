// Package evm holds the Ethereum data that following an intent needs: blocks, transactions, receipts and logs, as a node's
// JSON-RPC returns them.
//
// Fields that chains add to the standard ones are ignored, and no hash is computed: such fields are part of the hash too, so only
// the hash that a node returns is correct on all chains.
package evm

import (
	"bytes"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Block is a block without its transactions' contents.
type Block struct {
	Number     uint64
	Hash       common.Hash
	ParentHash common.Hash
	Time       time.Time
	// Transactions are the hashes of the block's transactions in their order.
	Transactions []common.Hash
}

// Log is an event that a contract emitted.
type Log struct {
	Address common.Address
	// Topics has zero to four elements; the first is the hash of the event's signature, unless the event is anonymous.
	Topics []common.Hash
	Data   []byte

	BlockNumber uint64
	BlockHash   common.Hash
	TxHash      common.Hash
	// Index is the log's position in its block as the node numbers it.
	Index uint
}

// Same reports whether two logs are one event by what they say. Nodes number logs differently.
func (l Log) Same(other Log) bool {
	return l.Address == other.Address && slices.Equal(l.Topics, other.Topics) && bytes.Equal(l.Data, other.Data)
}

// Receipt is the result of a transaction that is in a block.
type Receipt struct {
	TxHash      common.Hash
	BlockNumber uint64
	BlockHash   common.Hash
	From        common.Address
	// To is nil for a transaction that creates a contract.
	To *common.Address
	// Succeeded is false for a transaction that was reverted.
	Succeeded bool
	Logs      []Log
}

// UsesAccountNonce reports whether the transaction's type counts its nonce among those of its sender's account: the standard types, and those
// of ZKsync and Celo. Others have nonces of their own, such as parallel ones.
func (t Transaction) UsesAccountNonce() bool { return t.Type <= 4 || t.Type == 0x71 || t.Type == 0x7b }

// Transaction is a transaction that a node knows, mined or pending.
type Transaction struct {
	Hash  common.Hash
	From  common.Address
	To    *common.Address
	Nonce uint64
	// Type is the transaction's EIP-2718 type, 0 where the node tells none.
	Type uint64
	// Value is in wei. Value and Input are nil for types of transactions that have none.
	Value *big.Int
	Input []byte
	// BlockNumber and BlockHash are nil while the transaction is in no block.
	BlockNumber *uint64
	BlockHash   *common.Hash
}
