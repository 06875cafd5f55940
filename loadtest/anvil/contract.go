package anvil

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/deploy/stack"
)

// Contract is a compiled contract of deploy/chains/contracts.
type Contract struct {
	ABI      abi.ABI       `json:"abi"`
	Bytecode hexutil.Bytes `json:"bytecode"`
}

// Compiled reads a contract of deploy/chains/contracts by its name.
func Compiled(tb testing.TB, name string) Contract {
	tb.Helper()
	root, err := stack.FindRoot()
	if err != nil {
		tb.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", "chains", "contracts", "out", name+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	var c Contract
	if err := json.Unmarshal(text, &c); err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return c
}

// Deployed is a contract at its address.
type Deployed struct {
	Contract
	Address common.Address
}

// Deploy deploys a contract to a node that mines a block for each transaction.
func (n *Node) Deploy(tb testing.TB, from common.Address, c Contract, args ...any) Deployed {
	tb.Helper()
	encoded, err := c.ABI.Pack("", args...)
	if err != nil {
		tb.Fatal(err)
	}
	receipt := n.Execute(tb, Transaction{From: from, Data: append(append([]byte{}, c.Bytecode...), encoded...)})
	return Deployed{c, *receipt.ContractAddress}
}

// Transaction is a call of a method in a transaction.
func (d Deployed) Transaction(tb testing.TB, from common.Address, method string, args ...any) Transaction {
	tb.Helper()
	return Transaction{From: from, To: &d.Address, Data: d.Pack(tb, method, args...)}
}

// Pack encodes a call of a method.
func (d Deployed) Pack(tb testing.TB, method string, args ...any) []byte {
	tb.Helper()
	data, err := d.ABI.Pack(method, args...)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// Read calls a method that returns one value, at the newest block.
func Read[T any](tb testing.TB, n *Node, d Deployed, method string, args ...any) (value T) {
	tb.Helper()
	values, err := d.ABI.Unpack(method, n.Read(tb, d.Address, d.Pack(tb, method, args...)))
	if err != nil {
		tb.Fatal(err)
	}
	return *abi.ConvertType(values[0], &value).(*T) //nolint:forcetypeassert // the type is asked for
}

// Event returns the values of the first event of this name that the contract has in a receipt.
func (d Deployed) Event(tb testing.TB, receipt Receipt, name string) []any {
	tb.Helper()
	event := d.ABI.Events[name]
	for _, l := range receipt.Logs {
		if l.Address != d.Address || len(l.Topics) == 0 || l.Topics[0] != event.ID {
			continue
		}
		values, err := event.Inputs.NonIndexed().Unpack(l.Data)
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		return values
	}
	tb.Fatalf("no event %s in %+v", name, receipt)
	return nil
}
