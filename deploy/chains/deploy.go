package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm/runtime"
	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/deploy/chains/contracts"
)

var (
	inputContract   = contracts.MustCompiled("InputSettlerEscrow")
	outputContract  = contracts.MustCompiled("OutputSettlerSimple")
	oracleContract  = contracts.MustCompiled("OwnedOracle")
	tokenContract   = contracts.MustCompiled("TestToken")
	tetherContract  = contracts.MustCompiled("TestTether")
	fiatContract    = contracts.MustCompiled("TestFiatToken")
	permit2Contract = contracts.MustCompiled("Permit2")
)

// The addresses are the same on both chains: they depend on the deployer and its nonce only, so on the order of deployment.
var (
	inputSettler  = crypto.CreateAddress(address(ownerKey), 0)
	outputSettler = crypto.CreateAddress(address(ownerKey), 4)
	oracle        = crypto.CreateAddress(address(ownerKey), 5)
)

// permit2 is the address of Permit2 on most chains, which settlers have as a constant. Nothing can be deployed to it here, so its code is in
// the genesis block.
var permit2 = common.HexToAddress("0x000000000022D473030F116dDEE9F6B43aC78BA3")

// These gas limits are sufficient for the deployed contracts.
const (
	creationGas = 4_000_000
	mintGas     = 100_000
)

type token struct {
	symbol   string
	decimals uint8
	address  common.Address
}

var tokens = [5]token{
	{"tUSDC", 6, crypto.CreateAddress(address(ownerKey), 1)},
	{"tWETH", 18, crypto.CreateAddress(address(ownerKey), 2)},
	{"tFEE", 18, crypto.CreateAddress(address(ownerKey), 3)},
	{"tUSDT", 6, crypto.CreateAddress(address(ownerKey), 6)},
	{"tEURC", 6, crypto.CreateAddress(address(ownerKey), 7)},
}

// deploy executes the missing part of the deployment. The owner's nonce shows how much is done, because the deployment is its
// first transactions. They are all in one block unless the process is killed meanwhile.
func deploy(ctx context.Context, c *chain) error {
	calls, err := deployment()
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

// deployment returns the owner's first calls: they deploy the contracts and mint tokens for accounts.
func deployment() (calls []call, err error) {
	for _, c := range []struct {
		contracts.Contract
		args []any
	}{
		{inputContract, nil},
		{tokenContract, []any{"Test USD Coin", "tUSDC", uint8(6), false}},
		{tokenContract, []any{"Test Wrapped Ether", "tWETH", uint8(18), false}},
		{tokenContract, []any{"Test Fee Token", "tFEE", uint8(18), true}},
		{outputContract, nil},
		{oracleContract, []any{address(ownerKey)}},
		{tetherContract, []any{"Test Tether USD", "tUSDT", uint8(6)}},
		{fiatContract, []any{"Test Euro Coin", "tEURC", uint8(6)}},
	} {
		creation, err := c.Creation(c.args...)
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

// deploymentHash identifies a chain and what a version deploys on it.
func deploymentHash(id uint32) (common.Hash, error) {
	calls, err := deployment()
	data := [][]byte{binary.BigEndian.AppendUint32(nil, id)}
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

// permit2Code is what the creation of the contract leaves at an address.
func permit2Code() ([]byte, error) {
	code, _, _, err := runtime.Create(permit2Contract.Bytecode, &runtime.Config{GasLimit: creationGas})
	if err != nil {
		return nil, fmt.Errorf("create Permit2: %w", err)
	}
	return code, nil
}
