package rpctest

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/core/evm"
)

type blockJSON struct {
	Number       hexutil.Uint64 `json:"number"`
	Hash         common.Hash    `json:"hash"`
	ParentHash   common.Hash    `json:"parentHash"`
	Timestamp    hexutil.Uint64 `json:"timestamp"`
	GasLimit     hexutil.Uint64 `json:"gasLimit"`
	Transactions []any          `json:"transactions"`
}

func encodeBlock(b *block, full bool) blockJSON {
	encoded := blockJSON{
		Number: hexutil.Uint64(b.Number), Hash: b.Hash, ParentHash: b.ParentHash, GasLimit: 30_000_000,
		Timestamp:    hexutil.Uint64(b.Time.Unix()), //nolint:gosec // G115: times after 1970
		Transactions: make([]any, len(b.txs)),
	}
	for i, hash := range b.Transactions {
		encoded.Transactions[i] = hash
		if full {
			encoded.Transactions[i] = encodeTransaction(hash, b.txs[i], b)
		}
	}
	return encoded
}

type transactionJSON struct {
	Hash        common.Hash     `json:"hash"`
	From        common.Address  `json:"from"`
	To          *common.Address `json:"to"`
	Nonce       hexutil.Uint64  `json:"nonce"`
	Value       *hexutil.Big    `json:"value"`
	Input       hexutil.Bytes   `json:"input"`
	BlockNumber *hexutil.Uint64 `json:"blockNumber"`
	BlockHash   *common.Hash    `json:"blockHash"`
	Type        string          `json:"type"`
}

// encodeTransaction writes one without a block as pending.
func encodeTransaction(hash common.Hash, tx Tx, b *block) transactionJSON {
	encoded := transactionJSON{
		Hash: hash, From: tx.From, To: tx.To, Nonce: hexutil.Uint64(tx.Nonce), Value: (*hexutil.Big)(new(big.Int)), Input: tx.Input, Type: "0x2",
	}
	if tx.Value != nil {
		encoded.Value = (*hexutil.Big)(tx.Value)
	}
	if b != nil {
		encoded.BlockNumber, encoded.BlockHash = (*hexutil.Uint64)(&b.Number), &b.Hash
	}
	return encoded
}

type logJSON struct {
	Address     common.Address `json:"address"`
	Topics      []common.Hash  `json:"topics"`
	Data        hexutil.Bytes  `json:"data"`
	BlockNumber hexutil.Uint64 `json:"blockNumber"`
	BlockHash   common.Hash    `json:"blockHash"`
	TxHash      common.Hash    `json:"transactionHash"`
	Index       hexutil.Uint   `json:"logIndex"`
	Removed     bool           `json:"removed"`
}

func encodeLog(l evm.Log) logJSON {
	return logJSON{
		Address: l.Address, Topics: l.Topics, Data: l.Data, BlockNumber: hexutil.Uint64(l.BlockNumber), BlockHash: l.BlockHash,
		TxHash: l.TxHash, Index: hexutil.Uint(l.Index),
	}
}

// Receipt is a receipt as it is sent, for a node that lies.
type Receipt struct {
	TxHash      common.Hash     `json:"transactionHash"`
	BlockNumber hexutil.Uint64  `json:"blockNumber"`
	BlockHash   common.Hash     `json:"blockHash"`
	From        common.Address  `json:"from"`
	To          *common.Address `json:"to"`
	// Status is nil for a transaction from before EIP-658.
	Status *hexutil.Uint64 `json:"status,omitzero"`
	Logs   []logJSON       `json:"logs"`
}

// SetBlock moves the receipt and its logs to another block.
func (r *Receipt) SetBlock(number uint64, hash common.Hash) {
	r.BlockNumber, r.BlockHash = hexutil.Uint64(number), hash
	for i := range r.Logs {
		r.Logs[i].BlockNumber, r.Logs[i].BlockHash = r.BlockNumber, hash
	}
}

func encodeReceipt(p place) *Receipt {
	b, tx := p.block, p.block.txs[p.index]
	status := hexutil.Uint64(1)
	if tx.Reverted {
		status = 0
	}
	receipt := &Receipt{
		TxHash: b.Transactions[p.index], BlockNumber: hexutil.Uint64(b.Number), BlockHash: b.Hash, From: tx.From, To: tx.To, Status: &status,
		Logs: []logJSON{},
	}
	for _, l := range b.logs[b.firstLog[p.index]:b.firstLog[p.index+1]] {
		receipt.Logs = append(receipt.Logs, encodeLog(l))
	}
	return receipt
}
