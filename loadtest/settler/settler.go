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

// The first topics of the events.
var openTopic, refundedTopic, filledTopic = transfer.SettlerTopics[0], transfer.SettlerTopics[2], transfer.SettlerTopics[3]

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
func Open(i *transfer.Intent) rpctest.Tx {
	return transaction(i, i.Settlement.InputSettler, openTopic, nil)
}

// Refund refunds the order on the source chain.
func Refund(i *transfer.Intent) rpctest.Tx {
	return transaction(i, i.Settlement.InputSettler, refundedTopic, nil)
}

// Fill pays the order's output on the destination chain.
func Fill(i *transfer.Intent) (tx rpctest.Tx, err error) {
	record, err := i.FillRecordCall()
	if err != nil {
		return tx, err
	}
	const (
		head      = 4 * 32   // solver, timestamp, the output's offset, the amount paid
		arguments = 4 + 2*32 // the output follows the selector, the order id and its own offset
	)
	data := append(rpctest.Word(1), rpctest.Word(1)...)
	data = append(data, rpctest.Word(head)...)
	data = append(data, common.BigToHash(i.Destination.Amount).Bytes()...)
	return transaction(i, i.Settlement.OutputSettler, filledTopic, append(data, record[arguments:]...)), nil
}

func transaction(i *transfer.Intent, settler string, topic common.Hash, data []byte) rpctest.Tx {
	to := common.HexToAddress(settler)
	return rpctest.Tx{
		From: common.BigToAddress(i.Source.Amount), To: &to, Input: topic.Bytes(),
		Logs: []rpctest.Log{{Address: to, Topics: []common.Hash{topic, i.OrderID}, Data: data}},
	}
}
