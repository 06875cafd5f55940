// Package rpctest is a scripted EVM chain and nodes that serve it over JSON-RPC, with the faults of real ones.
//
// The chain executes nothing: tests say what transactions did. It needs no sockets (see Transport) and no test, so that a load
// generator can use it.
package rpctest

import (
	"encoding/binary"
	"maps"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/evm"
)

// Start is the time of a chain's first block.
var Start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Tx is a transaction and what it does when it is mined.
type Tx struct {
	From  common.Address
	Nonce uint64
	// To is nil for a transaction that creates a contract.
	To *common.Address
	// Value is in wei; nil means none.
	Value *big.Int
	Input []byte
	// Reverted transactions have no logs.
	Reverted bool
	Logs     []Log
}

// Log is what a contract emits.
type Log struct {
	Address common.Address
	Topics  []common.Hash
	Data    []byte
}

// Chain is one history of blocks. It is safe for concurrent use; blocks that were mined never change.
type Chain struct {
	id uint64

	mu     sync.RWMutex
	blocks []*block
	places map[common.Hash]place
	pool   map[common.Hash]Tx
	// pending are the hashes of the pool by sender and nonce.
	pending map[slot]common.Hash
	// nonces are the transactions that each sender has mined, in order.
	nonces map[common.Address][]nonceAt
	// salt tells the blocks of a fork from those it replaced.
	salt     uint64
	period   time.Duration
	nextTime time.Time
	state
}

type block struct {
	evm.Block
	txs  []Tx
	logs []evm.Log
	// firstLog is where each transaction's logs begin in logs.
	firstLog []int
}

type place struct {
	block *block
	index int
}

type nonceAt struct{ block, next uint64 }

type slot struct {
	from  common.Address
	nonce uint64
}

// NewChain is a chain with block 0, whose blocks come every 12 seconds from Start, or from a year ago where the clock is of a test.
func NewChain(id uint64) *Chain {
	start := Start
	if now := time.Now().UTC(); now.Before(start) {
		start = now.AddDate(-1, 0, 0).Truncate(time.Second)
	}
	c := &Chain{
		id: id, places: map[common.Hash]place{}, pool: map[common.Hash]Tx{}, pending: map[slot]common.Hash{}, nonces: map[common.Address][]nonceAt{},
		period: 12 * time.Second, nextTime: start, state: newState(),
	}
	c.mine(nil)
	return c
}

// SetPeriod is the time between blocks from now on.
func (c *Chain) SetPeriod(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.period = d
}

// SetTime is the time of the next block.
func (c *Chain) SetTime(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextTime = t.UTC().Truncate(time.Second)
}

// Head is the last block.
func (c *Chain) Head() evm.Block {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.head().Block
}

func (c *Chain) head() *block { return c.blocks[len(c.blocks)-1] }

// Block is the block of that number, which must exist.
func (c *Chain) Block(number uint64) evm.Block {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.blocks[number].Block
}

// Mine appends a block of these transactions. Those in the pool leave it, and so do others with their senders and nonces.
func (c *Chain) Mine(txs ...Tx) evm.Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mine(txs).Block
}

// MineEmpty appends n blocks without transactions.
func (c *Chain) MineEmpty(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.mine(nil)
	}
}

// Submit puts a transaction into the pool of all nodes, in the place of one with the same sender and nonce.
func (c *Chain) Submit(tx Tx) common.Hash {
	c.mu.Lock()
	defer c.mu.Unlock()
	hash := c.Hash(tx)
	if _, mined := c.places[hash]; mined {
		return hash
	}
	c.addPending(hash, tx)
	return hash
}

// Reorg removes the last blocks and mines others. Transactions that none of the others has are pending again, as on a real network,
// until they are dropped. The depth is at least 1 and leaves block 0.
func (c *Chain) Reorg(depth int, blocks ...[]Tx) {
	c.mu.Lock()
	defer c.mu.Unlock()
	removed := c.blocks[len(c.blocks)-depth:]
	c.nextTime = removed[0].Time
	c.blocks = slices.Clip(c.blocks[:len(c.blocks)-depth])
	for _, b := range slices.Backward(removed) {
		for i, tx := range b.txs {
			delete(c.places, b.Transactions[i])
			c.addPending(b.Transactions[i], tx)
		}
	}
	for from, mined := range c.nonces {
		c.nonces[from] = slices.DeleteFunc(mined, func(n nonceAt) bool { return n.block >= removed[0].Number })
	}
	c.salt++
	for _, txs := range blocks {
		c.mine(txs)
	}
}

// Fork is another chain with the same blocks up to that number, for nodes that disagree. Its next blocks have other hashes.
func (c *Chain) Fork(number uint64) *Chain {
	c.mu.RLock()
	defer c.mu.RUnlock()
	fork := &Chain{
		id: c.id, places: map[common.Hash]place{}, pool: maps.Clone(c.pool), pending: maps.Clone(c.pending), nonces: map[common.Address][]nonceAt{},
		salt: c.salt + 1<<32, period: c.period, nextTime: c.blocks[number].Time.Add(c.period), state: c.clone(),
	}
	for _, b := range c.blocks[:number+1] {
		fork.index(b)
	}
	return fork
}

// Hash is the hash of a transaction, the same in every block.
func (c *Chain) Hash(tx Tx) common.Hash {
	text := binary.BigEndian.AppendUint64(nil, c.id)
	text = binary.BigEndian.AppendUint64(append(text, tx.From[:]...), tx.Nonce)
	if tx.To != nil {
		text = append(text, tx.To[:]...)
	}
	value := common.Hash{}
	if tx.Value != nil {
		tx.Value.FillBytes(value[:])
	}
	return crypto.Keccak256Hash(text, value[:], tx.Input)
}

func (c *Chain) mine(txs []Tx) *block {
	b := &block{txs: txs}
	b.Time, b.Number = c.nextTime, uint64(len(c.blocks))
	if b.Number > 0 {
		b.ParentHash = c.head().Hash
	}
	header := binary.BigEndian.AppendUint64(b.ParentHash.Bytes(), b.Number)
	header = binary.BigEndian.AppendUint64(header, c.id)
	header = binary.BigEndian.AppendUint64(header, c.salt)
	header = binary.BigEndian.AppendUint64(header, uint64(b.Time.Unix())) //nolint:gosec // G115: times after 1970
	for _, tx := range txs {
		hash := c.Hash(tx)
		b.Transactions = append(b.Transactions, hash)
		header = append(header, hash[:]...)
	}
	b.Hash = crypto.Keccak256Hash(header)
	for i, tx := range txs {
		b.firstLog = append(b.firstLog, len(b.logs))
		if tx.Reverted {
			continue
		}
		for _, l := range tx.Logs {
			b.logs = append(b.logs, evm.Log{
				Address: l.Address, Topics: l.Topics, Data: l.Data, BlockNumber: b.Number, BlockHash: b.Hash,
				TxHash: b.Transactions[i], Index: uint(len(b.logs)),
			})
		}
	}
	b.firstLog = append(b.firstLog, len(b.logs))
	for _, tx := range txs {
		c.removePending(tx)
	}
	c.index(b)
	c.nextTime = c.nextTime.Add(c.period)
	return b
}

// index appends a block.
func (c *Chain) index(b *block) {
	c.blocks = append(c.blocks, b)
	for i, tx := range b.txs {
		c.places[b.Transactions[i]] = place{b, i}
		c.nonces[tx.From] = append(c.nonces[tx.From], nonceAt{b.Number, tx.Nonce + 1})
	}
}

// addPending puts a transaction into the pool, in the place of one with its sender and nonce.
func (c *Chain) addPending(hash common.Hash, tx Tx) {
	c.removePending(tx)
	c.pool[hash], c.pending[slot{tx.From, tx.Nonce}] = tx, hash
}

// removePending takes the transaction with that sender and nonce out of the pool.
func (c *Chain) removePending(tx Tx) {
	place := slot{tx.From, tx.Nonce}
	delete(c.pool, c.pending[place])
	delete(c.pending, place)
}
