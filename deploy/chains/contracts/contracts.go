// Package contracts contains the compiled contracts for local chains and tests.
package contracts

import (
	"embed"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

//go:embed out/*.json
var compiled embed.FS

// Contract is a compiled contract.
type Contract struct {
	ABI abi.ABI `json:"abi"`
	// Bytecode is the creation code; the packed constructor arguments follow it.
	Bytecode hexutil.Bytes `json:"bytecode"`
}

// MustCompiled returns a contract by its name; it panics if there is none.
func MustCompiled(name string) (c Contract) {
	text, err := compiled.ReadFile("out/" + name + ".json")
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		panic(fmt.Errorf("read the contract %s: %w", name, err))
	}
	return c
}

// Creation returns the data of the transaction that creates the contract with these constructor arguments.
func (c Contract) Creation(args ...any) ([]byte, error) {
	packed, err := c.ABI.Pack("", args...)
	if err != nil {
		return nil, fmt.Errorf("pack the constructor's arguments: %w", err)
	}
	return append(append([]byte{}, c.Bytecode...), packed...), nil
}
