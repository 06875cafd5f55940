package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/deploy/chains/contracts"
)

var (
	settlerContract = contracts.MustCompiled("Settler")
	tokenContract   = contracts.MustCompiled("TestToken")

	// The addresses are the same on both chains: they depend on the deployer and its nonce only.
	settlerAddress = crypto.CreateAddress(address(ownerKey), 0)
)

// These gas limits are sufficient for the deployed contracts.
const (
	creationGas = 4_000_000
	mintGas     = 100_000
)

// messageFee is the fee of settle and refund. It is not zero, so that a client that sends no value fails here as it would at a
// settler with a real bridge.
var messageFee = big.NewInt(1000)

type token struct {
	name, symbol string
	decimals     uint8
	takesFee     bool
	address      common.Address
}

// tokens are deployed in this order, after the settler.
var tokens = [3]token{
	{"Test USD Coin", "tUSDC", 6, false, crypto.CreateAddress(address(ownerKey), 1)},
	{"Test Wrapped Ether", "tWETH", 18, false, crypto.CreateAddress(address(ownerKey), 2)},
	{"Test Fee Token", "tFEE", 18, true, crypto.CreateAddress(address(ownerKey), 3)},
}

// deploy executes the missing part of the deployment. The owner's nonce shows how much is done, because the deployment is its
// first transactions. They are all in one block unless the process is killed meanwhile.
func deploy(ctx context.Context, c *chain) error {
	calls, err := deployment(c.id)
	if err != nil {
		return err
	}
	done, err := c.client.NonceAt(ctx, c.owner.address, nil)
	if err != nil {
		return fmt.Errorf("read the deployer's nonce: %w", err)
	}
	if done >= uint64(len(calls)) {
		return nil
	}
	var hashes []common.Hash
	for _, call := range calls[done:] {
		hash, err := c.owner.send(ctx, call)
		if err != nil {
			return err
		}
		hashes = append(hashes, hash)
	}
	return c.succeeded(ctx, hashes)
}

// succeeded waits until the transactions are in blocks. It returns an error if one reverted.
func (c *chain) succeeded(ctx context.Context, hashes []common.Hash) error {
	for _, hash := range hashes {
		receipt, err := c.receipt(ctx, hash)
		if err != nil {
			return fmt.Errorf("wait for transaction %s: %w", hash, err)
		}
		if receipt.Status != types.ReceiptStatusSuccessful {
			return fmt.Errorf("transaction %s failed: %w", hash, errReverted)
		}
	}
	return nil
}

var errReverted = errors.New("execution reverted")

// deployment returns the owner's first calls: they deploy the settler and the tokens, and mint tokens for accounts.
func deployment(id uint32) ([]call, error) {
	settler, err := settlerContract.Creation(id, true, messageFee)
	if err != nil {
		return nil, err
	}
	calls := []call{{data: settler, gas: creationGas}}
	for _, t := range tokens {
		creation, err := tokenContract.Creation(t.name, t.symbol, t.decimals, t.takesFee)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call{data: creation, gas: creationGas})
	}
	for _, t := range tokens {
		for _, account := range developmentAccounts() {
			calls = append(calls, t.mint(account, 1_000_000))
		}
		calls = append(calls, t.mint(address(solverKey), 1_000_000_000))
	}
	return calls, nil
}

// deploymentHash identifies what a version deploys.
func deploymentHash(id uint32) (common.Hash, error) {
	calls, err := deployment(id)
	var data [][]byte
	for _, call := range calls {
		data = append(data, call.data)
	}
	return crypto.Keccak256Hash(bytes.Join(data, nil)), err
}

// mint creates whole tokens for an account.
func (t token) mint(account common.Address, amount int64) call {
	data, err := tokenContract.ABI.Pack("mint", account, units(amount, t.decimals))
	if err != nil {
		panic(err) // unreachable: the ABI is the contract's own
	}
	return call{to: &t.address, data: data, gas: mintGas}
}
