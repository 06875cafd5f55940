package rpc

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/evm"
)

const (
	methodChainID     = "eth_chainId"
	methodBlock       = "eth_getBlockByNumber"
	methodLogs        = "eth_getLogs"
	methodReceipt     = "eth_getTransactionReceipt"
	methodTransaction = "eth_getTransactionByHash"
	methodCount       = "eth_getTransactionCount"
	methodCode        = "eth_getCode"
	methodBalance     = "eth_getBalance"
	methodCall        = "eth_call"
	methodEstimateGas = "eth_estimateGas"
)

// BlockID names a block by its number or by a tag.
type BlockID string

// The tags that are used. Not every chain has safe and finalized.
const (
	Latest    BlockID = "latest"
	Safe      BlockID = "safe"
	Finalized BlockID = "finalized"
)

// Number is the block of that number on the chain that the node takes for canonical.
func Number(n uint64) BlockID { return BlockID("0x" + strconv.FormatUint(n, 16)) }

// Request is a call of any type, for batches.
type Request interface {
	// Err is the error of this call, as its Result has it.
	Err() error
	pending() *call
}

// Call is a call of one method. After Provider.Do its Result is there; it can be sent again, to another provider too, but not by two
// goroutines at once.
type Call[T any] struct {
	call
	value T
}

// call is what all calls have.
type call struct {
	method string
	params []any
	decode func(jsontext.Value) error
	// span is the number of blocks of eth_getLogs.
	span uint64
	id   uint64
	err  error
}

var errNotSent = errors.New("the call was not sent")

func (c *Call[T]) pending() *call {
	var none T
	c.value, c.err = none, errNotSent
	return &c.call
}

// unexplained is true for an error that tells of the node and not of the question, which users choose for simulated transactions.
func (c *call) unexplained(err error) bool {
	node, ok := errors.AsType[*Error](err)
	return ok && node.kind == nil && c.method != methodCall && c.method != methodEstimateGas
}

// Result is the answer or the error of this call or of its whole batch.
func (c *Call[T]) Result() (T, error) { return c.value, c.err }

// Err is the error of Result.
func (c *call) Err() error { return c.err }

func newCall[T any](method string, decode func(jsontext.Value) (T, error), params ...any) *Call[T] {
	c := &Call[T]{call: call{method: method, params: params, err: errNotSent}}
	c.decode = func(text jsontext.Value) (err error) {
		c.value, err = decode(text)
		return err
	}
	return c
}

// required decodes a result that is not null.
func required[T any](text jsontext.Value) (v T, err error) {
	if text.Kind() == 'n' {
		return v, errors.New("the result is null")
	}
	err = json.Unmarshal(text, &v)
	return v, err
}

// known decodes a result that is null for what the node does not know, and checks that it is what was asked for.
func known[T any](check func(*T) bool) func(jsontext.Value) (*T, error) {
	return func(text jsontext.Value) (*T, error) {
		if text.Kind() == 'n' {
			return nil, nil
		}
		v, err := required[T](text)
		if err != nil {
			return nil, err
		}
		if !check(&v) {
			return nil, errors.New("the result is not what was asked for")
		}
		return &v, nil
	}
}

func quantity(text jsontext.Value) (uint64, error) {
	v, err := required[evm.Quantity](text)
	return uint64(v), err
}

func data(text jsontext.Value) ([]byte, error) {
	v, err := required[evm.Data](text)
	return v, err
}

// ChainID asks for the number of the chain that the node serves.
func ChainID() *Call[uint64] { return newCall(methodChainID, quantity) }

// BlockByNumber asks for a block; nil when the node does not know it.
func BlockByNumber(id BlockID) *Call[*evm.Block] {
	return newCall(methodBlock, known(func(b *evm.Block) bool { return id.names(b.Number) }), id, false)
}

// names is true for every number where the id is a tag.
func (id BlockID) names(number uint64) bool {
	return id == Latest || id == Safe || id == Finalized || id == Number(number)
}

// BlockTransactions asks for a block's transactions with their contents; ErrMissing when the node does not know the block.
func BlockTransactions(number uint64) *Call[[]evm.Transaction] {
	return newCall(methodBlock, func(text jsontext.Value) ([]evm.Transaction, error) {
		if text.Kind() == 'n' {
			return nil, ErrMissing
		}
		block, err := required[evm.Block](text)
		if err != nil {
			return nil, err
		}
		contents, err := required[struct {
			Transactions []evm.Transaction `json:"transactions"`
		}](text)
		if err != nil {
			return nil, err
		}
		for _, t := range contents.Transactions {
			if block.Number != number || t.BlockHash == nil || *t.BlockHash != block.Hash {
				return nil, errors.New("a transaction is of another block")
			}
		}
		return contents.Transactions, nil
	}, Number(number), true)
}

// LogFilter selects logs.
type LogFilter struct {
	// From and To are the first and the last block.
	From, To uint64
	// Addresses are the contracts; none means all.
	Addresses []common.Address
	// Topics lists for each position the topics of which a log must have one; an empty list takes all.
	Topics [][]common.Hash
}

// Logs asks for logs. A node that lags answers with none of the blocks it does not have: ask for the last block in the same batch.
func Logs(filter LogFilter) *Call[[]evm.Log] {
	type wire struct {
		From    BlockID          `json:"fromBlock"`
		To      BlockID          `json:"toBlock"`
		Address []common.Address `json:"address,omitempty"`
		Topics  []any            `json:"topics,omitempty"`
	}
	params := wire{From: Number(filter.From), To: Number(filter.To), Address: filter.Addresses}
	for _, topics := range filter.Topics {
		if len(topics) == 0 {
			params.Topics = append(params.Topics, nil)
			continue
		}
		params.Topics = append(params.Topics, topics)
	}
	c := newCall(methodLogs, func(text jsontext.Value) ([]evm.Log, error) {
		logs, err := required[[]evm.Log](text)
		if i := slices.IndexFunc(logs, func(l evm.Log) bool { return !filter.matches(l) }); err == nil && i >= 0 {
			return nil, fmt.Errorf("log %d was not asked for", i)
		}
		return logs, err
	}, params)
	c.span = 1 + max(filter.From, filter.To) - filter.From
	return c
}

func (f LogFilter) matches(l evm.Log) bool {
	if l.BlockNumber < f.From || l.BlockNumber > f.To || (len(f.Addresses) > 0 && !slices.Contains(f.Addresses, l.Address)) {
		return false
	}
	for i, topics := range f.Topics {
		if i >= len(l.Topics) || (len(topics) > 0 && !slices.Contains(topics, l.Topics[i])) {
			return false
		}
	}
	return true
}

// Receipt asks for the receipt of a transaction; nil while it is in no block that the node knows.
func Receipt(hash common.Hash) *Call[*evm.Receipt] {
	return newCall(methodReceipt, known(func(r *evm.Receipt) bool { return r.TxHash == hash }), hash)
}

// TransactionByHash asks for a transaction, which may be pending; nil when the node does not know it.
func TransactionByHash(hash common.Hash) *Call[*evm.Transaction] {
	return newCall(methodTransaction, known(func(t *evm.Transaction) bool { return t.Hash == hash }), hash)
}

// TransactionCount asks for the nonce of an address's next transaction at a block.
func TransactionCount(address common.Address, block BlockID) *Call[uint64] {
	return newCall(methodCount, quantity, address, block)
}

// Code asks for a contract's code at a block; empty for an account without code.
func Code(address common.Address, block BlockID) *Call[[]byte] {
	return newCall(methodCode, data, address, block)
}

// Balance asks for an address's balance at a block, in wei.
func Balance(address common.Address, block BlockID) *Call[*big.Int] {
	return newCall(methodBalance, func(text jsontext.Value) (*big.Int, error) {
		digits, err := required[string](text)
		if err != nil {
			return nil, err
		}
		return hexutil.DecodeBig(digits)
	}, address, block)
}

// Message is a simulated transaction.
type Message struct {
	From, To common.Address
	// Value is in wei; nil means none.
	Value *big.Int
	Data  []byte
}

func (m Message) params() any {
	return map[string]any{"from": m.From, "to": m.To, "value": (*hexutil.Big)(value(m.Value)), "data": hexutil.Bytes(m.Data)}
}

func value(v *big.Int) *big.Int {
	if v == nil {
		return new(big.Int)
	}
	return v
}

// CallContract asks for what a contract returns at a block; ErrReverted when it reverts.
func CallContract(m Message, block BlockID) *Call[[]byte] {
	return newCall(methodCall, data, m.params(), block)
}

// CallCode asks for what code returns that runs as a contract's constructor at the newest block, with at most that much gas. No contract is
// made of it.
func CallCode(code []byte, gas uint64) *Call[[]byte] {
	return newCall(methodCall, data, map[string]any{"data": hexutil.Bytes(code), "gas": hexutil.Uint64(gas)}, Latest)
}

// EstimateGas asks for the gas that a transaction would need; ErrReverted when it would revert.
func EstimateGas(m Message) *Call[uint64] { return newCall(methodEstimateGas, quantity, m.params()) }
