package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/evm"
	"intents.internal/core/outbound"
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
	methodSimulate    = "eth_simulateV1"
)

// BlockID names a block by its number or by a tag.
type BlockID string

// The tags that are used. Not every chain has safe and finalized.
const (
	Latest    BlockID = "latest"
	Safe      BlockID = "safe"
	Finalized BlockID = "finalized"
)

// Number is the block with that number on the node's canonical chain.
func Number(n uint64) BlockID { return BlockID("0x" + strconv.FormatUint(n, 16)) }

// Request is a call of any type, for batches.
type Request interface {
	// Err is the error of this call, the same as of its Result.
	Err() error
	pending() *call
}

// Call is a call of one method. Provider.Do sets its Result. It can be sent again, also to another provider, but not by two
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
	// logBlocks is the number of blocks of eth_getLogs.
	logBlocks uint64
	// bytes is the size of the result as it was sent.
	bytes int
	id    uint64
	err   error
}

var errNotSent = errors.New("the call was not sent")

func (c *Call[T]) pending() *call {
	var none T
	c.value, c.err = none, errNotSent
	return &c.call
}

// unexplained is set if an unknown error counts against the node.
func (c *call) unexplained(err error) bool {
	node, ok := errors.AsType[*Error](err)
	return ok && node.kind == nil && !c.chosenByUsers()
}

// chosenByUsers is set for a call whose content users choose: the transactions that they report and simulate. Its error says
// nothing about the node.
func (c *call) chosenByUsers() bool {
	switch c.method {
	case methodCall, methodEstimateGas, methodSimulate, methodReceipt, methodTransaction:
		return true
	}
	return false
}

// Result returns the result, or the error of this call or of its batch.
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

// required decodes a result that must not be null.
func required[T any](text jsontext.Value, options ...json.Options) (v T, err error) {
	if text.Kind() == 'n' {
		return v, errors.New("the result is null")
	}
	err = json.Unmarshal(text, &v, options...)
	return v, err
}

// elements decodes a list whose elements must pass a check, one after the other.
func elements[T any](text jsontext.Value, check func(n int, element *T) error) (list []T, err error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	list = []T{}
	err = outbound.DecodeList(decoder, math.MaxInt, func() error {
		var element T
		if err := json.UnmarshalDecode(decoder, &element); err != nil {
			return err
		}
		if err := check(len(list), &element); err != nil {
			return err
		}
		list = append(list, element)
		return nil
	})
	return list, err
}

// known decodes a result that is null if the node does not know the object, and checks that it is the requested one and valid.
func known[T any](check func(*T) bool, valid func(*T) error) func(jsontext.Value) (*T, error) {
	return func(text jsontext.Value) (*T, error) {
		if text.Kind() == 'n' {
			return nil, nil
		}
		v, err := required[T](text)
		if err != nil {
			return nil, err
		}
		if !check(&v) {
			return nil, errOther
		}
		return &v, valid(&v)
	}
}

var errOther = errors.New("the result is not what was asked for")

func quantity(text jsontext.Value) (uint64, error) {
	v, err := required[evm.Quantity](text)
	return uint64(v), err
}

func data(text jsontext.Value) ([]byte, error) {
	v, err := required[evm.Data](text)
	return v, err
}

// ChainID gets the chain id that the node serves.
func ChainID() *Call[uint64] { return newCall(methodChainID, quantity) }

// BlockByNumber gets a block, nil if the node does not know it.
func BlockByNumber(id BlockID) *Call[*evm.Block] {
	return newCall(methodBlock, known(func(b *evm.Block) bool { return id.names(b.Number) }, checkBlock), id, false)
}

// tags are the block ids that are no numbers.
var tags = map[BlockID]struct{}{Latest: {}, Safe: {}, Finalized: {}}

// names reports whether the block may have this number; a tag accepts every number.
func (id BlockID) names(number uint64) bool {
	_, byTag := tags[id]
	return byTag || id == Number(number)
}

// BlockTransactions gets those of a block's transactions that keep is true for, with their contents, or ErrMissing if the node does not
// know the block. It omits transactions that cannot be decoded: anyone can send one, of a type that the chain has added.
func BlockTransactions(number uint64, keep func(evm.Transaction) bool) *Call[[]evm.Transaction] {
	return newCall(methodBlock, func(text jsontext.Value) ([]evm.Transaction, error) {
		if text.Kind() == 'n' {
			return nil, ErrMissing
		}
		block, err := required[evm.Block](text)
		if err != nil {
			return nil, err
		}
		contents := blockContents{block: block, keep: keep}
		if block.Number != number {
			return nil, errOfOtherBlock
		}
		_, err = required[struct {
			Transactions *blockContents `json:"transactions"`
		}](text, json.WithUnmarshalers(json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, _ *blockContents) error { return contents.read(decoder) })))
		return contents.kept, err
	}, Number(number), true)
}

var errOfOtherBlock = errors.New("a transaction is of another block")

// blockContents are the transactions of a block.
type blockContents struct {
	block evm.Block
	keep  func(evm.Transaction) bool
	kept  []evm.Transaction
}

func (b *blockContents) read(decoder *jsontext.Decoder) error {
	return outbound.DecodeList(decoder, math.MaxInt, func() error {
		text, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		var t evm.Transaction
		unreadable := json.Unmarshal(text, &t) != nil // as a type that this version does not know
		switch {
		case unreadable:
		case t.BlockHash == nil || *t.BlockHash != b.block.Hash:
			return errOfOtherBlock
		case b.keep(t):
			b.kept = append(b.kept, t)
		}
		return nil //nolint:nilerr // an unreadable one is left out
	})
}

// LogFilter selects logs.
type LogFilter struct {
	// From and To are the first and the last block.
	From, To uint64
	// Addresses are the contracts; none means all.
	Addresses []common.Address
	// Topics lists for each position the accepted topics; an empty list accepts all.
	Topics [][]common.Hash
	// MaxData is the size over which the data of a log are dropped, 0 for none: anybody can emit megabytes.
	MaxData int
}

// Logs gets logs. A node that lags returns no logs of the blocks that it lacks: get the last block in the same batch.
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
		logs, err := elements(text, func(n int, l *evm.Log) error {
			if !filter.matches(*l) {
				return fmt.Errorf("log %d was not asked for", n)
			}
			if filter.MaxData > 0 && len(l.Data) > filter.MaxData {
				l.Data = nil
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return checkLogs(logs)
	}, params)
	c.logBlocks = 1 + max(filter.From, filter.To) - filter.From
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

// Receipt gets the receipt of a transaction with those of its logs that keep is true for, nil while it is in no block that the node
// knows.
func Receipt(hash common.Hash, keep func(evm.Log) bool) *Call[*evm.Receipt] {
	return newCall(methodReceipt, func(text jsontext.Value) (*evm.Receipt, error) {
		if text.Kind() == 'n' {
			return nil, nil
		}
		receipt, err := evm.DecodeReceipt(text, keep)
		switch {
		case err != nil:
			return nil, err
		case receipt.TxHash != hash:
			return nil, errOther
		}
		return receipt, checkReceipt(receipt)
	}, hash)
}

// TransactionByHash gets a transaction, which may be pending; nil if the node does not know it.
func TransactionByHash(hash common.Hash) *Call[*evm.Transaction] {
	return newCall(methodTransaction, known(func(t *evm.Transaction) bool { return t.Hash == hash }, func(*evm.Transaction) error { return nil }), hash)
}

// TransactionCount gets the nonce of an address's next transaction at a block.
func TransactionCount(address common.Address, block BlockID) *Call[uint64] {
	return newCall(methodCount, quantity, address, block)
}

// Code gets a contract's code at a block, empty for an account without code.
func Code(address common.Address, block BlockID) *Call[[]byte] {
	return newCall(methodCode, data, address, block)
}

// Balance gets an address's balance at a block, in wei.
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

// CallContract simulates a call of a contract at a block and returns its result, or ErrReverted.
func CallContract(m Message, block BlockID) *Call[[]byte] {
	return newCall(methodCall, data, m.params(), block)
}

// CallCode runs code as a contract's constructor at the newest block, with at most this gas, and returns its result. It deploys
// nothing.
func CallCode(code []byte, gas uint64) *Call[[]byte] {
	return newCall(methodCall, data, map[string]any{"data": hexutil.Bytes(code), "gas": hexutil.Uint64(gas)}, Latest)
}

// EstimateGas estimates the gas of a transaction, or returns ErrReverted.
func EstimateGas(m Message) *Call[uint64] { return newCall(methodEstimateGas, quantity, m.params()) }
