// Package settler has the settlers of scripted chains: the transactions in which they emit their events about an intent's order, and their
// answers about it.
//
// The source amounts of the intents of a chain must differ: they make the transactions unique.
package settler

import (
	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
)

// Answer has the settlers say of every order that it is open and not filled.
func Answer(c *rpctest.Chain, inputSettler, outputSettler string) {
	const fillRecord = "getFillRecord(bytes32,(bytes32,bytes32,uint256,bytes32,uint256,bytes32,bytes,bytes))"
	constant := func(word uint64) rpctest.Function {
		return func(rpctest.Call) ([]byte, error) { return rpctest.Word(word), nil }
	}
	c.SetFunction(common.HexToAddress(inputSettler), rpctest.OrderStatus, constant(uint64(transfer.OrderDeposited)))
	c.SetFunction(common.HexToAddress(outputSettler), rpctest.NewSelector(fillRecord), constant(0))
}

// Open opens the order on the source chain.
func Open(i *transfer.Intent) rpctest.Tx { return transaction(i, rpctest.Opened(i)) }

// Refund refunds the order on the source chain.
func Refund(i *transfer.Intent) rpctest.Tx { return transaction(i, rpctest.Refunded(i)) }

// Fill pays the order's output on the destination chain.
func Fill(i *transfer.Intent) rpctest.Tx { return transaction(i, rpctest.Filled(i)) }

func transaction(i *transfer.Intent, log rpctest.Log) rpctest.Tx {
	return rpctest.Tx{From: common.BigToAddress(i.Source.Amount), To: &log.Address, Input: log.Topics[0].Bytes(), Logs: []rpctest.Log{log}}
}
