// Package signature decides whether an account has signed a hash: by its key, or by its contract (ERC-1271), which may not be deployed yet
// (ERC-6492).
package signature

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/core/rpc"
	"intents.internal/pkg/caip"
)

// validator is the contract deploy/chains/contracts/src/SignatureValidator.sol, which runs as a constructor and is never deployed.
var validator = mustValidator()

// erc6492 are the values of an ERC-6492 signature, in the validator's own types.
var erc6492 = abi.Arguments{{Type: validator.argument("factory")}, {Type: validator.argument("factoryData")}, {Type: validator.argument("signature")}}

//go:embed validator.json
var compiledValidator []byte

// validatorGas bounds the computation that an account can cause on a node: it is the maximum gas of a transaction (EIP-7825).
const validatorGas = 1 << 24

// erc1271Magic is what the validator, like isValidSignature of ERC-1271, returns for a valid signature: the function's selector,
// padded.
var erc1271Magic = [32]byte{0x16, 0x26, 0xba, 0x7e}

// SmartAccount is a signature of a smart account (ERC-1271). Factory and FactoryData are the call of an ERC-6492 signature that
// deploys an account without code. They are zero for any other signature.
type SmartAccount struct {
	Signature   []byte
	Factory     common.Address
	FactoryData []byte
}

// erc6492Suffix is the suffix of ERC-6492 signatures, whose accounts may have no code yet.
var erc6492Suffix = bytes.Repeat([]byte{0x64, 0x92}, 16)

// ParseSmartAccount parses a signature, also in the form of ERC-6492: abi.encode(factory, factoryData, signature) and a suffix.
func ParseSmartAccount(raw []byte) (SmartAccount, error) {
	wrapped, isWrapped := bytes.CutSuffix(raw, erc6492Suffix)
	if !isWrapped {
		return SmartAccount{Signature: raw}, nil
	}
	values, err := erc6492.Unpack(wrapped)
	if err != nil {
		return SmartAccount{}, fmt.Errorf("read an ERC-6492 signature: %w", err)
	}
	return SmartAccount{
		Factory: values[0].(common.Address), FactoryData: values[1].([]byte), Signature: values[2].([]byte), //nolint:forcetypeassert // the types are those of erc6492
	}, nil
}

// BySmartAccount asks a node of the chain whether the smart account accepts the signature of the hash. If the account has code, the
// factory is ignored. The error wraps rpc.ErrNoProvider if the chain has no node, and is a NoAnswerError if none answers.
//
// One node decides. The operator chooses it, its answer concerns accounts on its own chain alone, and moves no money. A second provider would make
// each request wait for both, and fail if either fails.
func BySmartAccount(ctx context.Context, client *rpc.Client, chain caip.ChainID, account common.Address, hash common.Hash, s SmartAccount) (bool, error) {
	arguments, err := validator.abi.Pack("", account, hash, s.Signature, s.Factory, s.FactoryData)
	if err != nil {
		return false, fmt.Errorf("pack the signature of %s: %w", account, err)
	}
	call := rpc.CallCode(append(append([]byte{}, validator.code...), arguments...), validatorGas)
	var answer [32]byte
	err = rpc.Ask(ctx, client, chain, func(ctx context.Context, p *rpc.Provider) error {
		returned, err := rpc.Fetch(ctx, p, call)
		if err == nil && len(returned) != len(answer) {
			err = fmt.Errorf("%s: the validator of signatures returned %d bytes, which it never does", p.Host(), len(returned))
		}
		if err == nil {
			answer = [32]byte(returned)
		}
		return err
	})
	return answer == erc1271Magic, err
}

type compiled struct {
	abi  abi.ABI
	code []byte
}

func mustValidator() compiled {
	var c struct {
		ABI      abi.ABI       `json:"abi"`
		Bytecode hexutil.Bytes `json:"bytecode"`
	}
	if err := json.Unmarshal(compiledValidator, &c); err != nil {
		panic(fmt.Errorf("read validator.json: %w", err))
	}
	return compiled{c.ABI, c.Bytecode}
}

// argument returns the ABI type of a constructor argument.
func (c compiled) argument(name string) abi.Type {
	at := slices.IndexFunc(c.abi.Constructor.Inputs, func(a abi.Argument) bool { return a.Name == name })
	return c.abi.Constructor.Inputs[at].Type
}
