package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/go-cmp/cmp"
)

// testWallet is a wallet (EIP-1193) whose chains are nodes that sign for all of their accounts. The zero value of every field but chains
// and account is usable.
type testWallet struct {
	// chains are those that exist, by their number.
	chains map[uint64]*evmChain

	mu sync.Mutex
	// account is the one that is offered.
	account common.Address
	// key signs typed data as the account, nil for the chain's node.
	key *ecdsa.PrivateKey
	// added are the chains that the wallet knows, and current is the chosen one of them.
	added   []uint64
	current uint64
	// switches means that adding a chain chooses it, and wraps that the error of an unknown chain is the cause of a general one.
	switches, wraps bool
	// declines is the method that the user does not allow, once allows of its requests were allowed.
	declines string
	allows   int
	// held is a method whose requests wait until they may go on, nil for none.
	held *heldMethod
	// batches means that the wallet knows EIP-5792, batched are the transactions of each batch.
	batches bool
	batched [][]common.Hash
	// asked are the methods of all requests since the last set, and sent is the last transaction of eth_sendTransaction.
	asked []string
	sent  common.Hash
}

// heldMethod is a method whose requests arrive and wait.
type heldMethod struct {
	name             string
	arrived, release chan struct{}
}

// walletError is an error of EIP-1193.
type walletError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *walletError) Error() string { return e.Message }

// set changes the wallet as its user would, and forgets what was asked.
func (w *testWallet) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = nil
	change()
}

// decline has the user not allow a method any more, once so many of its requests were allowed; an empty one allows all.
func (w *testWallet) decline(method string, allows int) {
	w.set(func() { w.declines, w.allows = method, allows })
}

// hold has the requests of a method wait, as a user does who does not answer at once.
func (w *testWallet) hold(method string) *heldMethod {
	held := &heldMethod{method, make(chan struct{}, 9), make(chan struct{})}
	w.set(func() { w.held = held })
	return held
}

// count is how often a method was asked for since the last set.
func (w *testWallet) count(method string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(w.asked), func(asked string) bool { return asked != method }))
}

// last is the last transaction that eth_sendTransaction was answered with.
func (w *testWallet) last() common.Hash {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// install announces the wallet (EIP-6963) to every page that the tab opens from now on.
func (w *testWallet) install(b *tab) {
	b.t.Helper()
	b.do(chromedp.ExposeFunc("walletInGo", w.answer))
	script := page.AddScriptToEvaluateOnNewDocumentParams{Source: `{
		const request = async ({method, params}) => {
			const {result, error} = JSON.parse(await window.walletInGo(JSON.stringify({method, params: params ?? []})));
			if (error) throw Object.assign(new Error(error.message), {code: error.code, data: error.data});
			return result;
		};
		const detail = Object.freeze({info: {uuid: "1", name: "Test Wallet", icon: "data:,", rdns: "example.wallet"}, provider: {request}});
		addEventListener("eip6963:requestProvider", () => dispatchEvent(new CustomEvent("eip6963:announceProvider", {detail})));
	}`}
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, script); err != nil {
		b.t.Fatal(err)
	}
}

// answer answers a request, both as JSON.
func (w *testWallet) answer(ctx context.Context, text string) (string, error) {
	var request struct {
		Method string
		Params []json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &request); err != nil {
		return "", err
	}
	answer := map[string]any{}
	result, err := w.do(ctx, request.Method, request.Params)
	if failed, ok := err.(*walletError); ok { //nolint:errorlint // do wraps none
		answer["error"] = failed
	} else if err != nil {
		answer["error"] = &walletError{Code: -32603, Message: err.Error()}
	} else {
		answer["result"] = result
	}
	out, err := json.Marshal(answer)
	return string(out), err
}

func (w *testWallet) do(ctx context.Context, method string, params []json.RawMessage) (any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, method)
	if held := w.held; held != nil && held.name == method {
		w.mu.Unlock()
		held.arrived <- struct{}{}
		select {
		case <-held.release:
		case <-ctx.Done(): // its page is gone
		}
		w.mu.Lock()
	}
	if method == w.declines {
		if w.allows--; w.allows < 0 {
			return nil, &walletError{Code: 4001, Message: "User rejected the request."}
		}
	}
	chain := w.chains[w.current]
	switch {
	case method == "eth_requestAccounts":
		return []string{strings.ToLower(w.account.Hex())}, ctx.Err()
	case method == "eth_chainId":
		return hexutil.Uint64(w.current), nil
	case method == "wallet_switchEthereumChain":
		return nil, w.switchChain(params[0])
	case method == "wallet_addEthereumChain":
		return nil, w.addChain(params[0])
	case method == "personal_sign":
		var signature string
		err := chain.Try(ctx, &signature, method, params[0], params[1])
		return signature, err
	case method == "eth_signTypedData_v4" && w.key != nil:
		return signTypedData(w.key, params[1])
	case method == "eth_signTypedData_v4":
		var signature string
		err := chain.Try(ctx, &signature, method, params[0], params[1])
		return signature, err
	case method == "eth_sendTransaction":
		err := chain.Try(ctx, &w.sent, method, params[0])
		return w.sent, err
	case method == "eth_call":
		var result json.RawMessage
		err := chain.Try(ctx, &result, method, params[0], params[1])
		return result, err
	case method == "eth_getTransactionReceipt":
		var result json.RawMessage
		err := chain.Try(ctx, &result, method, params[0])
		return result, err
	case w.batches && method == "wallet_getCapabilities":
		return map[string]any{}, nil
	case w.batches && method == "wallet_sendCalls":
		return w.sendCalls(ctx, params[0])
	case w.batches && method == "wallet_getCallsStatus":
		return w.callsStatus(ctx, params[0])
	default:
		return nil, &walletError{Code: 4200, Message: "The wallet does not support " + method + "."}
	}
}

func (w *testWallet) switchChain(param json.RawMessage) error {
	var wanted struct{ ChainID hexutil.Uint64 }
	if err := json.Unmarshal(param, &wanted); err != nil {
		return err
	}
	if !slices.Contains(w.added, uint64(wanted.ChainID)) {
		unknown := &walletError{Code: 4902, Message: "Unrecognized chain."}
		if w.wraps {
			return &walletError{Code: -32603, Message: "Internal error.", Data: map[string]any{"originalError": unknown}}
		}
		return unknown
	}
	w.current = uint64(wanted.ChainID)
	return nil
}

// addChain adds a chain whose parameters are those of its node (EIP-3085).
func (w *testWallet) addChain(param json.RawMessage) error {
	var got map[string]any
	if err := json.Unmarshal(param, &got); err != nil {
		return err
	}
	for id, chain := range w.chains {
		want := map[string]any{
			"chainId": hexutil.EncodeUint64(id), "chainName": chain.name(), "rpcUrls": []any{chain.URL},
			"nativeCurrency": map[string]any{"name": "Ether", "symbol": "ETH", "decimals": 18.},
		}
		if cmp.Equal(want, got) {
			w.added = append(w.added, id)
			if w.switches {
				w.current = id
			}
			return nil
		}
	}
	return &walletError{Code: -32602, Message: fmt.Sprintf("There is no such chain: %s", param)}
}

// sendCalls sends a batch as transactions of their own, as a wallet may where atomicRequired is false.
func (w *testWallet) sendCalls(ctx context.Context, param json.RawMessage) (any, error) {
	var batch struct {
		Version        string
		ChainID        hexutil.Uint64
		From           common.Address
		AtomicRequired *bool
		Calls          []map[string]any
	}
	if err := json.Unmarshal(param, &batch); err != nil {
		return nil, err
	}
	if batch.Version != "2.0.0" || uint64(batch.ChainID) != w.current || batch.AtomicRequired == nil {
		return nil, &walletError{Code: -32602, Message: fmt.Sprintf("not the parameters of EIP-5792: %s", param)}
	}
	hashes := make([]common.Hash, len(batch.Calls))
	for n, call := range batch.Calls {
		call["from"] = batch.From
		if err := w.chains[w.current].Try(ctx, &hashes[n], "eth_sendTransaction", call); err != nil {
			return nil, err
		}
	}
	w.batched = append(w.batched, hashes)
	return map[string]any{"id": hexutil.EncodeUint64(uint64(len(w.batched)))}, nil
}

func (w *testWallet) callsStatus(ctx context.Context, param json.RawMessage) (any, error) {
	var id hexutil.Uint64
	if err := json.Unmarshal(param, &id); err != nil {
		return nil, err
	}
	receipts := make([]json.RawMessage, len(w.batched[id-1]))
	for n, hash := range w.batched[id-1] {
		if err := w.chains[w.current].Try(ctx, &receipts[n], "eth_getTransactionReceipt", hash); err != nil {
			return nil, err
		}
		if string(receipts[n]) == "null" { // anvil may leave what is sent at once for its next block
			if err := w.chains[w.current].Try(ctx, nil, "anvil_mine", 1); err != nil {
				return nil, err
			}
			return map[string]any{"id": id, "status": 100}, nil
		}
	}
	return map[string]any{"version": "2.0.0", "id": id, "chainId": hexutil.Uint64(w.current), "status": 200, "atomic": false, "receipts": receipts}, nil
}
