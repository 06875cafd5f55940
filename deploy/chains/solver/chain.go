package solver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"intents.internal/deploy/chains/contracts"
)

const (
	requestTimeout = 10 * time.Second
	// receiptTimeout bounds how long a transaction may take to be included in a block.
	receiptTimeout = time.Minute
)

var (
	inputSettlerABI  = contracts.MustCompiled("InputSettlerEscrow").ABI
	outputSettlerABI = contracts.MustCompiled("OutputSettlerSimple").ABI
	tokenABI         = contracts.MustCompiled("TestToken").ABI
)

// chain is a chain with its node.
type chain struct {
	Chain
	account common.Address
	id      *big.Int
	client  *ethclient.Client

	// sending is held while a transaction takes the account's next nonce. A node may count a transaction with a delay, so nonce
	// is the one after the last transaction sent; 0 means to ask the node.
	sending sync.Mutex
	nonce   uint64
}

func parseChainID(id string) (*big.Int, error) {
	reference, isEIP155 := strings.CutPrefix(id, "eip155:")
	number, err := strconv.ParseUint(reference, 10, 63)
	if !isEIP155 || err != nil || number == 0 {
		return nil, fmt.Errorf("%q is no CAIP-2 id of the namespace eip155", id)
	}
	return new(big.Int).SetUint64(number), nil
}

// newChain creates a chain. It sends no request.
func newChain(ctx context.Context, configured Chain) (*chain, error) {
	id, err := parseChainID(configured.ID)
	if err != nil {
		return nil, err
	}
	client, err := rpc.DialOptions(ctx, configured.RPC, rpc.WithHTTPClient(&http.Client{Timeout: requestTimeout}))
	if err != nil {
		return nil, fmt.Errorf("connect to the node of %s: %w", configured.ID, err)
	}
	account := crypto.PubkeyToAddress(configured.Key.PublicKey)
	return &chain{Chain: configured, account: account, id: id, client: ethclient.NewClient(client)}, nil
}

// opened returns the orders that the input settler opened in a range of blocks, in block order.
func (c *chain) opened(ctx context.Context, from, to uint64) ([]*order, error) {
	event := inputSettlerABI.Events["Open"]
	logs, err := c.client.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(from), ToBlock: new(big.Int).SetUint64(to),
		Addresses: []common.Address{c.InputSettler}, Topics: [][]common.Hash{{event.ID}},
	})
	if err != nil {
		return nil, fmt.Errorf("read the events of blocks %d to %d: %w", from, to, err)
	}
	var orders []*order
	for _, l := range logs {
		if len(l.Topics) == 2 {
			orders = append(orders, newOrder(l.Topics[1], l.Data, l.BlockNumber))
		}
	}
	return orders, nil
}

// filled returns who filled an order's output and when, nil if nobody has. The record is the hash of both, and the event has them.
func (c *chain) filled(ctx context.Context, o *order) (*contracts.SolveParams, error) {
	record, err := read[[32]byte](ctx, c, c.OutputSettler, outputSettlerABI, "getFillRecord", o.id, o.output())
	if err != nil || record == [32]byte{} {
		return nil, err
	}
	head, err := c.client.BlockNumber(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the newest block: %w", err)
	}
	event := outputSettlerABI.Events["OutputFilled"]
	logs, err := c.client.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(head - min(head, lookBack)),
		Addresses: []common.Address{c.OutputSettler}, Topics: [][]common.Hash{{event.ID}, {o.id}},
	})
	if err != nil {
		return nil, fmt.Errorf("read the fills of the order: %w", err)
	}
	for _, l := range logs { // others may have filled other outputs under this id
		values, err := event.Inputs.NonIndexed().Unpack(l.Data)
		if err != nil {
			return nil, fmt.Errorf("decode a fill of the order: %w", err)
		}
		solver, timestamp := values[0].([32]byte), values[1].(uint32) //nolint:forcetypeassert // the ABI is the contract's own
		if crypto.Keccak256Hash(solver[:], binary.BigEndian.AppendUint32(nil, timestamp)) == record {
			return &contracts.SolveParams{Timestamp: timestamp, Solver: solver}, nil
		}
	}
	return nil, &skippedError{"its fill is too old"}
}

// read calls a method that returns one value, at the newest block.
func read[T any](ctx context.Context, c *chain, at common.Address, contract abi.ABI, method string, args ...any) (value T, err error) {
	data, err := contract.Pack(method, args...)
	if err != nil {
		return value, fmt.Errorf("pack %s: %w", method, err)
	}
	answer, err := c.client.CallContract(ctx, ethereum.CallMsg{From: c.account, To: &at, Data: data}, nil)
	if err != nil {
		return value, fmt.Errorf("call %s of %s: %w", method, at, err)
	}
	if err := contract.UnpackIntoInterface(&value, method, answer); err != nil {
		return value, fmt.Errorf("call %s of %s, which answers otherwise: %w", method, at, err)
	}
	return value, nil
}

// revertedError is the error of a transaction that was included in a block and reverted.
type revertedError struct{ hash common.Hash }

func (e *revertedError) Error() string { return "the transaction " + e.hash.Hex() + " was reverted" }

// transact calls a method in a transaction and waits until it has succeeded. It does not send a transaction that would revert.
func (c *chain) transact(ctx context.Context, to common.Address, value *big.Int, contract abi.ABI, method string, args ...any) (common.Hash, error) {
	data, err := contract.Pack(method, args...)
	if err != nil {
		return common.Hash{}, fmt.Errorf("pack %s: %w", method, err)
	}
	return c.execute(ctx, method, to, value, data)
}

// execute is transact for a call that is encoded already; name is for errors.
func (c *chain) execute(ctx context.Context, name string, to common.Address, value *big.Int, data []byte) (common.Hash, error) {
	tx, err := c.send(ctx, to, value, data)
	if err != nil {
		return common.Hash{}, fmt.Errorf("send %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, receiptTimeout)
	defer cancel()
	receipt, err := bind.WaitMined(ctx, c.client, tx.Hash())
	if err != nil {
		c.forgetNonce()
		return tx.Hash(), fmt.Errorf("wait for the transaction %s of %s: %w", tx.Hash(), name, err)
	}
	if receipt.Status != types.ReceiptStatusSuccessful {
		return tx.Hash(), fmt.Errorf("call %s: %w", name, &revertedError{tx.Hash()})
	}
	return tx.Hash(), nil
}

func (c *chain) send(ctx context.Context, to common.Address, value *big.Int, data []byte) (*types.Transaction, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	gas, err := c.client.EstimateGas(ctx, ethereum.CallMsg{From: c.account, To: &to, Value: value, Data: data})
	if err != nil {
		return nil, fmt.Errorf("estimate the gas: %w", err)
	}
	nonce, err := c.client.PendingNonceAt(ctx, c.account)
	if err != nil {
		return nil, fmt.Errorf("ask for the nonce: %w", err)
	}
	nonce = max(nonce, c.nonce)
	tip, err := c.client.SuggestGasTipCap(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the gas price: %w", err)
	}
	head, err := c.client.HeaderByNumber(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the newest block: %w", err)
	}
	if head.BaseFee == nil {
		return nil, errors.New("the newest block has no base fee (EIP-1559)")
	}
	tx, err := types.SignNewTx(c.Key, types.LatestSignerForChainID(c.id), &types.DynamicFeeTx{
		ChainID: c.id, Nonce: nonce, To: &to, Value: value, Data: data, Gas: gas + gas/4, // the state may change before it is included
		GasTipCap: tip, GasFeeCap: new(big.Int).Add(tip, new(big.Int).Lsh(head.BaseFee, 1)),
	})
	if err != nil {
		return nil, fmt.Errorf("sign the transaction: %w", err)
	}
	if err := c.client.SendTransaction(ctx, tx); err != nil {
		c.nonce = 0
		return nil, err
	}
	c.nonce = nonce + 1
	return tx, nil
}

// forgetNonce makes the next transaction ask the node for the nonce, because a sent transaction may be lost.
func (c *chain) forgetNonce() {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.nonce = 0
}
