package evm

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decoding follows the schemas of https://github.com/ethereum/execution-apis: quantities are 0x and hexadecimal digits without
// leading zeros, hashes and addresses have their exact length, required members are neither missing nor null, and no member is
// duplicated. Unknown members and the transaction types that L2 chains add are ignored.

const maxTopics = 4

// UnmarshalJSON decodes a block of eth_getBlockByNumber, with the hashes of its transactions or complete transactions. A block
// without a number or a hash is pending, which is an error.
func (b *Block) UnmarshalJSON(text []byte) error {
	var wire struct {
		Number       *Quantity         `json:"number"`
		Hash         *common.Hash      `json:"hash"`
		ParentHash   *common.Hash      `json:"parentHash"`
		Timestamp    *Quantity         `json:"timestamp"`
		Transactions *[]jsontext.Value `json:"transactions"`
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return fmt.Errorf("block: %w", err)
	}
	var fields fields
	decoded := Block{
		Number:     fields.blockNumber("number", wire.Number),
		Hash:       value(&fields, "hash", wire.Hash),
		ParentHash: value(&fields, "parentHash", wire.ParentHash),
		Time:       fields.time("timestamp", wire.Timestamp),
	}
	transactions := value(&fields, "transactions", wire.Transactions)
	if fields.err != nil {
		return fmt.Errorf("block: %w", fields.err)
	}
	decoded.Transactions = make([]common.Hash, len(transactions))
	for i, text := range transactions {
		hash, err := transactionHash(text)
		if err != nil {
			return fmt.Errorf("block: transactions[%d]: %w", i, err)
		}
		decoded.Transactions[i] = hash
	}
	*b = decoded
	return nil
}

// transactionHash decodes an element of a block's transactions: a hash, or an object that has one.
func transactionHash(text jsontext.Value) (common.Hash, error) {
	if text.Kind() != '{' {
		var hash common.Hash
		err := json.Unmarshal(text, &hash)
		return hash, err
	}
	var wire struct {
		Hash *common.Hash `json:"hash"`
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return common.Hash{}, err
	}
	var fields fields
	return value(&fields, "hash", wire.Hash), fields.err
}

// UnmarshalJSON decodes a log of eth_getLogs or of a receipt. A log that a reorganization removed or that is in no block is an
// error.
func (l *Log) UnmarshalJSON(text []byte) error {
	var wire struct {
		Address     *common.Address `json:"address"`
		Topics      *[]common.Hash  `json:"topics"`
		Data        *Data           `json:"data"`
		BlockNumber *Quantity       `json:"blockNumber"`
		BlockHash   *common.Hash    `json:"blockHash"`
		TxHash      *common.Hash    `json:"transactionHash"`
		Index       *Quantity       `json:"logIndex"`
		Removed     bool            `json:"removed"`
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	var fields fields
	decoded := Log{
		Address:     value(&fields, "address", wire.Address),
		Topics:      value(&fields, "topics", wire.Topics),
		Data:        value(&fields, "data", wire.Data),
		BlockNumber: fields.blockNumber("blockNumber", wire.BlockNumber),
		BlockHash:   value(&fields, "blockHash", wire.BlockHash),
		TxHash:      value(&fields, "transactionHash", wire.TxHash),
		Index:       uint(value(&fields, "logIndex", wire.Index)),
	}
	switch {
	case fields.err != nil:
		return fmt.Errorf("log: %w", fields.err)
	case wire.Removed:
		return errors.New("log: removed is true")
	case len(decoded.Topics) > maxTopics:
		return fmt.Errorf("log: has %d topics, at most %d are possible", len(decoded.Topics), maxTopics)
	case decoded.Index > math.MaxInt32:
		return errors.New("log: logIndex is over 31 bits")
	}
	*l = decoded
	return nil
}

// UnmarshalJSON decodes a receipt of eth_getTransactionReceipt. Its logs must be of the same transaction and block. Receipts from
// before EIP-658 have no status: such a transaction counts as succeeded if it has logs, because a reverted one has none.
func (r *Receipt) UnmarshalJSON(text []byte) error {
	var wire struct {
		TxHash      *common.Hash    `json:"transactionHash"`
		BlockNumber *Quantity       `json:"blockNumber"`
		BlockHash   *common.Hash    `json:"blockHash"`
		From        *common.Address `json:"from"`
		To          *common.Address `json:"to"`
		Status      *Quantity       `json:"status"`
		Logs        *[]Log          `json:"logs"`
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	var fields fields
	decoded := Receipt{
		TxHash:      value(&fields, "transactionHash", wire.TxHash),
		BlockNumber: fields.blockNumber("blockNumber", wire.BlockNumber),
		BlockHash:   value(&fields, "blockHash", wire.BlockHash),
		From:        value(&fields, "from", wire.From),
		To:          wire.To,
		Logs:        value(&fields, "logs", wire.Logs),
	}
	decoded.Succeeded = len(decoded.Logs) > 0
	if wire.Status != nil {
		decoded.Succeeded = *wire.Status == 1
	}
	switch {
	case fields.err != nil:
		return fmt.Errorf("receipt: %w", fields.err)
	case wire.Status != nil && *wire.Status > 1:
		return errors.New("receipt: status is neither 0x0 nor 0x1")
	}
	for i, log := range decoded.Logs {
		if log.TxHash != decoded.TxHash || log.BlockHash != decoded.BlockHash || log.BlockNumber != decoded.BlockNumber {
			return fmt.Errorf("receipt: logs[%d] is of another transaction or block", i)
		}
	}
	*r = decoded
	return nil
}

// UnmarshalJSON decodes a transaction of eth_getTransactionByHash or of a block. A transaction has both the number and the hash
// of its block or, while it is pending, neither. Some chains have types of transactions without a value or an input.
func (t *Transaction) UnmarshalJSON(text []byte) error {
	var wire struct {
		Hash        *common.Hash    `json:"hash"`
		From        *common.Address `json:"from"`
		To          *common.Address `json:"to"`
		Nonce       *Quantity       `json:"nonce"`
		Value       *amount         `json:"value"`
		Input       *Data           `json:"input"`
		BlockNumber *Quantity       `json:"blockNumber"`
		BlockHash   *common.Hash    `json:"blockHash"`
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return fmt.Errorf("transaction: %w", err)
	}
	var fields fields
	decoded := Transaction{
		Hash:      value(&fields, "hash", wire.Hash),
		From:      value(&fields, "from", wire.From),
		To:        wire.To,
		Nonce:     uint64(value(&fields, "nonce", wire.Nonce)),
		Value:     (*big.Int)(wire.Value),
		BlockHash: wire.BlockHash,
	}
	if wire.Input != nil {
		decoded.Input = *wire.Input
	}
	if wire.BlockNumber != nil {
		number := fields.blockNumber("blockNumber", wire.BlockNumber)
		decoded.BlockNumber = &number
	}
	switch {
	case fields.err != nil:
		return fmt.Errorf("transaction: %w", fields.err)
	case (wire.BlockNumber == nil) != (wire.BlockHash == nil):
		return errors.New("transaction: has only one of blockNumber and blockHash")
	}
	*t = decoded
	return nil
}

// Quantity is a JSON-RPC quantity of at most 64 bits: 0x and hexadecimal digits without leading zeros.
type Quantity uint64

// UnmarshalText decodes a quantity. hexutil would accept an empty text as 0.
func (q *Quantity) UnmarshalText(text []byte) error {
	number, err := hexutil.DecodeUint64(string(text))
	*q = Quantity(number)
	return err
}

// Data is JSON-RPC data: 0x and two hexadecimal digits a byte.
type Data []byte

// UnmarshalText decodes data.
func (d *Data) UnmarshalText(text []byte) error {
	bytes, err := hexutil.Decode(string(text))
	*d = bytes
	return err
}

// amount is a quantity of at most 256 bits.
type amount big.Int

func (a *amount) UnmarshalText(text []byte) error {
	number, err := hexutil.DecodeBig(string(text))
	if err != nil {
		return err
	}
	*a = amount(*number)
	return nil
}

// lastSecond is 9999-12-31T23:59:59Z, the last time that both RFC 3339 and Postgres can represent.
const lastSecond = 253402300799

var errMissing = errors.New("is missing")

// fields keeps the first error of an object's members.
type fields struct{ err error }

func (f *fields) fail(name string, err error) {
	if f.err == nil {
		f.err = fmt.Errorf("%s %w", name, err)
	}
}

// value returns a required member.
func value[T any](f *fields, name string, member *T) (v T) {
	if member == nil {
		f.fail(name, errMissing)
		return v
	}
	return *member
}

// blockNumber returns a required block number, which must fit the database's signed 64 bits.
func (f *fields) blockNumber(name string, member *Quantity) uint64 {
	number := uint64(value(f, name, member))
	if number > math.MaxInt64 {
		f.fail(name, errors.New("is over 63 bits"))
	}
	return number
}

func (f *fields) time(name string, member *Quantity) time.Time {
	seconds := uint64(value(f, name, member))
	if seconds > lastSecond {
		f.fail(name, errors.New("is after the year 9999"))
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}
