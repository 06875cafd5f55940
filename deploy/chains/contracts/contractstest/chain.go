// Package contractstest runs chains for tests: go-ethereum's simulated backend with a block for each transaction.
package contractstest

import (
	"crypto/ecdsa"
	"encoding/binary"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"intents.internal/deploy/chains/contracts"
)

// gasLimit is the gas limit of each transaction. Gas is not estimated, so reverting transactions are included in blocks too.
const gasLimit = 5_000_000

// Chain is a chain with funded accounts.
type Chain struct {
	ID *big.Int
	// Keys are the keys of the accounts. Tests that send from one account in several goroutines must use Send.
	Keys []*ecdsa.PrivateKey
	// URL serves JSON-RPC.
	URL string
	// Down makes the URL respond with 503.
	Down atomic.Bool

	mu      sync.Mutex
	backend *simulated.Backend
	// node is the backend's JSON-RPC.
	node *rpc.Client
}

// Start runs a chain until the test ends.
func Start(tb testing.TB, id int64) *Chain {
	tb.Helper()
	c := &Chain{ID: big.NewInt(id)}
	alloc := types.GenesisAlloc{}
	for range 4 {
		key, err := crypto.GenerateKey()
		if err != nil {
			tb.Fatal(err)
		}
		c.Keys = append(c.Keys, key)
		alloc[crypto.PubkeyToAddress(key.PublicKey)] = types.Account{Balance: new(big.Int).Mul(big.NewInt(1000), big.NewInt(params.Ether))}
	}
	socket := filepath.Join(shortTempDir(tb), "rpc")
	c.backend = simulated.NewBackend(alloc, func(nodeConf *node.Config, conf *ethconfig.Config) {
		nodeConf.IPCPath = socket
		config := *conf.Genesis.Config
		config.ChainID = c.ID
		conf.Genesis.Config = &config
	})
	tb.Cleanup(func() {
		if err := c.backend.Close(); err != nil {
			tb.Error(err)
		}
	})
	c.backend.Commit() // the genesis block has a time in 1970
	client, err := rpc.DialIPC(tb.Context(), socket)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	c.node = client
	server := httptest.NewServer(c)
	tb.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// shortTempDir creates a directory for a socket. Paths of TempDir may be too long for one.
func shortTempDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "chain") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// Account is the address of the nth key.
func (c *Chain) Account(n int) common.Address { return crypto.PubkeyToAddress(c.Keys[n].PublicKey) }

// Deployed is a contract at its address.
type Deployed struct {
	contracts.Contract
	Address common.Address
}

// Word returns the address as 32 bytes, the format of outputs.
func (d Deployed) Word() [32]byte { return common.BytesToHash(d.Address[:]) }

// Deploy creates a contract from the first account.
func (c *Chain) Deploy(tb testing.TB, name string, args ...any) Deployed {
	tb.Helper()
	contract := contracts.MustCompiled(name)
	data, err := contract.Creation(args...)
	if err != nil {
		tb.Fatal(err)
	}
	return Deployed{contract, c.create(tb, name, data)}
}

// DeployCode creates a contract from the first account that runs code, at most 65535 bytes.
func (c *Chain) DeployCode(tb testing.TB, code []byte) common.Address {
	tb.Helper()
	size := binary.BigEndian.AppendUint16(nil, uint16(len(code))) //nolint:gosec // see above
	// PUSH2 size, DUP1, PUSH1 12, PUSH1 0, CODECOPY, PUSH1 0, RETURN, which are 12 bytes
	return c.create(tb, "code", slices.Concat([]byte{0x61}, size, []byte{0x80, 0x60, 12, 0x60, 0, 0x39, 0x60, 0, 0xf3}, code))
}

func (c *Chain) create(tb testing.TB, name string, data []byte) common.Address {
	tb.Helper()
	receipt := c.send(tb, 0, nil, nil, data)
	if receipt.Status != types.ReceiptStatusSuccessful {
		tb.Fatalf("%s was not created", name)
	}
	return receipt.ContractAddress
}

// Send calls a method in a transaction of the nth account, which must succeed.
func (c *Chain) Send(tb testing.TB, n int, value int64, d Deployed, method string, args ...any) *types.Receipt {
	tb.Helper()
	if reason := c.Revert(tb, n, value, d, method, args...); reason != "" {
		tb.Fatalf("%s reverts: %s", method, reason)
	}
	receipt := c.send(tb, n, &d.Address, big.NewInt(value), pack(tb, d, method, args...))
	if receipt.Status != types.ReceiptStatusSuccessful {
		tb.Fatalf("%s was reverted", method)
	}
	return receipt
}

func (c *Chain) send(tb testing.TB, n int, to *common.Address, value *big.Int, data []byte) *types.Receipt {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	client := c.backend.Client()
	nonce, err := client.PendingNonceAt(tb.Context(), c.Account(n))
	if err != nil {
		tb.Fatal(err)
	}
	tx := types.MustSignNewTx(c.Keys[n], types.LatestSignerForChainID(c.ID), &types.DynamicFeeTx{
		ChainID: c.ID, Nonce: nonce, To: to, Value: value, Data: data, Gas: gasLimit,
		GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei),
	})
	if err := client.SendTransaction(tb.Context(), tx); err != nil {
		tb.Fatal(err)
	}
	c.backend.Commit()
	receipt, err := client.TransactionReceipt(tb.Context(), tx.Hash())
	if err != nil {
		tb.Fatal(err)
	}
	return receipt
}

// Revert calls a method from the nth account and returns the name of the error that it reverts with, or the node's message; empty
// if the call succeeds.
func (c *Chain) Revert(tb testing.TB, n int, value int64, d Deployed, method string, args ...any) string {
	tb.Helper()
	_, err := c.backend.Client().CallContract(tb.Context(), ethereum.CallMsg{
		From: c.Account(n), To: &d.Address, Value: big.NewInt(value), Data: pack(tb, d, method, args...),
	}, nil)
	if err == nil {
		return ""
	}
	data, _ := contracts.RevertData(err)
	if name := contracts.ErrorName(data); name != "" {
		return name
	}
	return strings.TrimPrefix(err.Error(), "execution reverted: ")
}

// Read calls a method that returns one value.
func Read[T any](tb testing.TB, c *Chain, d Deployed, method string, args ...any) (value T) {
	tb.Helper()
	data, err := c.backend.Client().CallContract(tb.Context(), ethereum.CallMsg{To: &d.Address, Data: pack(tb, d, method, args...)}, nil)
	if err != nil {
		tb.Fatalf("%s: %v", method, err)
	}
	if err := d.ABI.UnpackIntoInterface(&value, method, data); err != nil {
		tb.Fatalf("%s: %v", method, err)
	}
	return value
}

// Balance is an account's balance of the native asset.
func (c *Chain) Balance(tb testing.TB, account common.Address) *big.Int {
	tb.Helper()
	balance, err := c.backend.Client().BalanceAt(tb.Context(), account, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return balance
}

// Logs returns all logs of an event of a contract.
func (c *Chain) Logs(tb testing.TB, d Deployed, event string) []types.Log {
	tb.Helper()
	logs, err := c.backend.Client().FilterLogs(tb.Context(), ethereum.FilterQuery{
		FromBlock: new(big.Int), Addresses: []common.Address{d.Address}, Topics: [][]common.Hash{{d.ABI.Events[event].ID}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return logs
}

// Now is the time of the newest block.
func (c *Chain) Now(tb testing.TB) time.Time {
	tb.Helper()
	head, err := c.backend.Client().HeaderByNumber(tb.Context(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return time.Unix(int64(head.Time), 0) //nolint:gosec // block times are small
}

// Advance produces a block that is later than the newest one by d.
func (c *Chain) Advance(tb testing.TB, d time.Duration) {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.backend.AdjustTime(d); err != nil {
		tb.Fatal(err)
	}
}

func pack(tb testing.TB, d Deployed, method string, args ...any) []byte {
	tb.Helper()
	data, err := d.ABI.Pack(method, args...)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
