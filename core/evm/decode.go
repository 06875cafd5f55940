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

	"intents.internal/core/outbound"
)

// Decoding follows the schemas of https://github.com/ethereum/execution-apis: quantities are 0x and hexadecimal digits without
// leading zeros, hashes and addresses have their exact length, required members are neither missing nor null, and no member is
// duplicated. Unknown members and the transaction types that L2 chains add are ignored.

const maxTopics = 4

// list is a JSON list that is decoded element by element, none of which is null: it is no larger than its text.
type list[T any] []T

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *list[T]) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	*l = list[T]{}
	return outbound.DecodeList(decoder, math.MaxInt, func() error {
		var element T
		if decoder.PeekKind() == 'n' {
			return fmt.Errorf("element %d is null", len(*l))
		}
		err := json.UnmarshalDecode(decoder, &element)
		*l = append(*l, element)
		return err
	})
}

// UnmarshalJSON decodes a block of eth_getBlockByNumber, with the hashes of its transactions or complete transactions. A block
// without a number or a hash is pending, which is an error.
func (b *Block) UnmarshalJSON(text []byte) error {
	var wire struct {
		Number       *Quantity              `json:"number"`
		Hash         *common.Hash           `json:"hash"`
		ParentHash   *common.Hash           `json:"parentHash"`
		Timestamp    *Quantity              `json:"timestamp"`
		Transactions *list[transactionHash] `json:"transactions"`
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
	for i, hash := range transactions {
		decoded.Transactions[i] = common.Hash(hash)
	}
	*b = decoded
	return nil
}

// transactionHash is an element of a block's transactions: a hash, or an object that has one.
type transactionHash common.Hash

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (h *transactionHash) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	if decoder.PeekKind() != '{' {
		return json.UnmarshalDecode(decoder, (*common.Hash)(h))
	}
	var wire struct {
		Hash *common.Hash `json:"hash"`
	}
	if err := json.UnmarshalDecode(decoder, &wire); err != nil {
		return err
	}
	var fields fields
	*h = transactionHash(value(&fields, "hash", wire.Hash))
	return fields.err
}

// UnmarshalJSON decodes a log of eth_getLogs or of a receipt. A log that a reorganization removed or that is in no block is an
// error.
func (l *Log) UnmarshalJSON(text []byte) error {
	var wire struct {
		Address     *common.Address `json:"address"`
		Topics      *topics         `json:"topics"`
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
	case decoded.Index > math.MaxInt32:
		return errors.New("log: logIndex is over 31 bits")
	}
	*l = decoded
	return nil
}

// topics are those of a log, at most four.
type topics []common.Hash

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *topics) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	*t = topics{}
	return outbound.DecodeList(decoder, maxTopics, func() error {
		var topic common.Hash
		err := json.UnmarshalDecode(decoder, &topic)
		*t = append(*t, topic)
		return err
	})
}

// keptLogs are the logs of a receipt that are kept. Each is checked to be of the same transaction and block as the first.
type keptLogs struct {
	keep  func(Log) bool
	kept  []Log
	first *Log
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (k *keptLogs) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	k.kept, k.first = []Log{}, nil
	return outbound.DecodeList(decoder, math.MaxInt, func() error {
		var log Log
		if err := json.UnmarshalDecode(decoder, &log); err != nil {
			return err
		}
		if k.first == nil {
			k.first = &log
		}
		if log.TxHash != k.first.TxHash || log.BlockHash != k.first.BlockHash || log.BlockNumber != k.first.BlockNumber {
			return errors.New("logs are of several transactions or blocks")
		}
		if k.keep(log) {
			k.kept = append(k.kept, log)
		}
		return nil
	})
}

// UnmarshalJSON decodes a receipt with all of its logs, see DecodeReceipt.
func (r *Receipt) UnmarshalJSON(text []byte) error {
	decoded, err := DecodeReceipt(text, func(Log) bool { return true })
	if err == nil {
		*r = *decoded
	}
	return err
}

// DecodeReceipt decodes a receipt of eth_getTransactionReceipt with the logs that keep is true for: anybody can make a transaction of
// many logs. All of its logs must be of the same transaction and block. Receipts from before EIP-658 have no status: such a transaction
// counts as succeeded if it has logs, because a reverted one has none.
func DecodeReceipt(text []byte, keep func(Log) bool) (*Receipt, error) {
	var wire struct {
		TxHash      *common.Hash    `json:"transactionHash"`
		BlockNumber *Quantity       `json:"blockNumber"`
		BlockHash   *common.Hash    `json:"blockHash"`
		From        *common.Address `json:"from"`
		To          *common.Address `json:"to"`
		Status      *Quantity       `json:"status"`
		Logs        *keptLogs       `json:"logs"`
	}
	logs := keptLogs{keep: keep}
	wire.Logs = &logs
	if err := json.Unmarshal(text, &wire); err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	if logs.kept == nil {
		wire.Logs = nil
	}
	var fields fields
	decoded := Receipt{
		TxHash:      value(&fields, "transactionHash", wire.TxHash),
		BlockNumber: fields.blockNumber("blockNumber", wire.BlockNumber),
		BlockHash:   value(&fields, "blockHash", wire.BlockHash),
		From:        value(&fields, "from", wire.From),
		To:          wire.To,
		Logs:        value(&fields, "logs", wire.Logs).kept,
		Succeeded:   logs.first != nil,
	}
	if wire.Status != nil {
		decoded.Succeeded = *wire.Status == 1
	}
	switch {
	case fields.err != nil:
		return nil, fmt.Errorf("receipt: %w", fields.err)
	case wire.Status != nil && *wire.Status > 1:
		return nil, errors.New("receipt: status is neither 0x0 nor 0x1")
	}
	if log := logs.first; log != nil && (log.TxHash != decoded.TxHash || log.BlockHash != decoded.BlockHash || log.BlockNumber != decoded.BlockNumber) {
		return nil, errors.New("receipt: its logs are of another transaction or block")
	}
	return &decoded, nil
}

// UnmarshalJSON decodes a transaction of eth_getTransactionByHash or of a block. A transaction has both the number and the hash
// of its block or, while it is pending, neither. Some chains have types of transactions without a value or an input.
func (t *Transaction) UnmarshalJSON(text []byte) error {
	var wire struct {
		Hash        *common.Hash    `json:"hash"`
		From        *common.Address `json:"from"`
		To          *common.Address `json:"to"`
		Nonce       *Quantity       `json:"nonce"`
		Type        *Quantity       `json:"type"`
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
	if wire.Type != nil {
		decoded.Type = uint64(*wire.Type)
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
