package anvil

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/pkg/testkit/asynctest"
)

// callTimeout bounds one JSON-RPC call.
const callTimeout = 20 * time.Second

// Node is a running node. It is safe for concurrent use.
type Node struct {
	ChainID uint64
	URL     string
	// Accounts are funded and unlocked: their transactions need no signature.
	Accounts []common.Address

	// sending is held while the node chooses a nonce, because it chooses the same one for two concurrent requests.
	sending sync.Mutex
}

func newNode(tb testing.TB, chainID uint64, url string) *Node {
	tb.Helper()
	n := &Node{ChainID: chainID, URL: url}
	n.Call(tb, &n.Accounts, "eth_accounts")
	return n
}

// Transaction is the argument of eth_sendTransaction; the node chooses the omitted fields.
type Transaction struct {
	From     common.Address  `json:"from"`
	To       *common.Address `json:"to,omitempty"`
	Value    *hexutil.Big    `json:"value,omitempty"`
	Data     hexutil.Bytes   `json:"data,omitempty"`
	Nonce    *hexutil.Uint64 `json:"nonce,omitempty"`
	Gas      hexutil.Uint64  `json:"gas,omitempty"`
	GasPrice *hexutil.Big    `json:"gasPrice,omitempty"`
}

// Receipt is the outcome of a transaction.
type Receipt struct {
	Hash            common.Hash     `json:"transactionHash"`
	BlockNumber     hexutil.Uint64  `json:"blockNumber"`
	BlockHash       common.Hash     `json:"blockHash"`
	Status          hexutil.Uint64  `json:"status"`
	GasUsed         hexutil.Uint64  `json:"gasUsed"`
	ContractAddress *common.Address `json:"contractAddress"`
	Logs            []Log           `json:"logs"`
}

// Log is an event.
type Log struct {
	Address common.Address `json:"address"`
	Topics  []common.Hash  `json:"topics"`
	Data    hexutil.Bytes  `json:"data"`
}

// CallError is the error object of a JSON-RPC response.
type CallError struct {
	Code    int
	Message string
	// Data has the revert data of a call as a JSON string; null if there is none.
	Data json.RawMessage
}

func (e *CallError) Error() string { return fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data) }

// Call calls a method and decodes its result; result may be nil.
func (n *Node) Call(tb testing.TB, result any, method string, params ...any) {
	tb.Helper()
	if err := n.Try(tb.Context(), result, method, params...); err != nil {
		tb.Fatal(err)
	}
}

// Try is Call for methods that may fail. The node's own error is a *CallError.
func (n *Node) Try(ctx context.Context, result any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	defer response.Body.Close()
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *CallError      `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("%s: %w", method, answer.Error)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return fmt.Errorf("%s: %w: %s", method, err, answer.Result)
	}
	return nil
}

// Send submits a transaction. It does not wait until it is mined.
func (n *Node) Send(tb testing.TB, t Transaction) common.Hash {
	tb.Helper()
	n.sending.Lock()
	defer n.sending.Unlock()
	var hash common.Hash
	asynctest.Eventually(tb, "the node takes the transaction", func() bool {
		err := n.Try(tb.Context(), &hash, "eth_sendTransaction", t)
		if err != nil && t.Nonce == nil && strings.Contains(err.Error(), "nonce too low") {
			return false // the node has chosen it while it mined a block
		}
		if err != nil {
			tb.Fatal(err)
		}
		return true
	})
	return hash
}

// Execute submits a transaction to a node that mines without Mine, and fails the test if it reverts.
func (n *Node) Execute(tb testing.TB, t Transaction) Receipt {
	tb.Helper()
	receipt := n.Mined(tb, n.Send(tb, t))
	if receipt.Status != 1 {
		tb.Fatalf("chain %d: transaction %s of %s reverted", n.ChainID, receipt.Hash, t.From)
	}
	return receipt
}

// Mined waits for the receipt of a transaction. Even a node that mines at once has it only shortly after Send.
func (n *Node) Mined(tb testing.TB, hash common.Hash) (mined Receipt) {
	tb.Helper()
	asynctest.Eventually(tb, "transaction "+hash.String()+" is mined", func() bool {
		receipt := n.Receipt(tb, hash)
		if receipt != nil {
			mined = *receipt
		}
		return receipt != nil
	})
	return mined
}

// Receipt returns the receipt of a transaction, nil if it is in no block.
func (n *Node) Receipt(tb testing.TB, hash common.Hash) *Receipt {
	tb.Helper()
	var receipt *Receipt
	n.Call(tb, &receipt, "eth_getTransactionReceipt", hash)
	return receipt
}

// Read calls a contract at the newest block.
func (n *Node) Read(tb testing.TB, to common.Address, data []byte) []byte {
	tb.Helper()
	var result hexutil.Bytes
	n.Call(tb, &result, "eth_call", Transaction{To: &to, Data: data}, "latest")
	return result
}

// Nonce returns the next nonce of an account, without pending transactions.
func (n *Node) Nonce(tb testing.TB, account common.Address) uint64 {
	tb.Helper()
	var nonce hexutil.Uint64
	n.Call(tb, &nonce, "eth_getTransactionCount", account, "latest")
	return uint64(nonce)
}

// Mine mines this many blocks, the first with the pending transactions.
func (n *Node) Mine(tb testing.TB, blocks int) {
	tb.Helper()
	n.Call(tb, nil, "anvil_mine", hexutil.Uint64(blocks)) //nolint:gosec // small numbers of a test
}

// Reorganize replaces this many of the newest blocks with as many empty ones.
func (n *Node) Reorganize(tb testing.TB, depth int) {
	tb.Helper()
	n.Call(tb, nil, "anvil_reorg", depth, []any{})
}

// PassTime mines a block at this time, or later if the chain's clock is past it.
func (n *Node) PassTime(tb testing.TB, until time.Time) {
	tb.Helper()
	var head struct{ Timestamp hexutil.Uint64 }
	n.Call(tb, &head, "eth_getBlockByNumber", "latest", false)
	if next := hexutil.Uint64(until.Unix()); head.Timestamp < next { //nolint:gosec // after 1970
		n.Call(tb, nil, "evm_setNextBlockTimestamp", next)
	}
	n.Mine(tb, 1)
}
