package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// sendView is a transaction that a browser wallet can send.
type sendView struct {
	// Params are the parameters of the script send.js, as JSON.
	Params string
	Tx     *transfer.Tx
	Chain  string
	// Watched means that the chain's nodes can simulate the transaction.
	Watched bool
	// Purpose is empty for the transaction that executes the intent; any other, such as a refund, is not reported.
	Purpose string
}

// sendView returns nil for no transaction.
func (c *console) sendView(intent *transfer.Intent, tx *transfer.Tx) (*sendView, error) {
	if tx == nil {
		return nil, nil
	}
	v := &sendView{Tx: tx, Chain: c.chainName(tx.Chain), Watched: c.Intents.CanPreflight(tx.Chain)}
	allowances, err := allowanceParameters(tx.Allowances)
	if err != nil {
		return nil, fmt.Errorf("write the allowances of transfer %s: %w", intent.ID, err)
	}
	params, err := json.Marshal(struct {
		ID       string             `json:"id"`
		Chain    string             `json:"chain"`
		AddChain *addChainParameter `json:"addChain"`
		// Calls have no sender where any account can send them.
		Calls json.RawMessage `json:"calls"`
		// Allowances are those that the calls before the last one grant, in their order.
		Allowances []allowanceParameter `json:"allowances"`
	}{intent.ID.String(), v.Chain, c.addChainParameter(tx.Chain), transfer.AppendSendCalls(nil, tx.Chain, tx.From, tx.Calls()), allowances})
	if err != nil {
		return nil, fmt.Errorf("write the transaction of transfer %s: %w", intent.ID, err)
	}
	v.Params = string(params)
	return v, nil
}

// allowanceParameter is how a script finds out whether an allowance must be granted, and first be reset.
type allowanceParameter struct {
	// Query is the parameter of eth_call that returns the allowance.
	Query  callParameter `json:"query"`
	Amount *hexutil.Big  `json:"amount"`
	Reset  callParameter `json:"reset"`
}

// callParameter is a call in the form of JSON-RPC.
type callParameter struct {
	To    string        `json:"to"`
	Value *hexutil.Big  `json:"value,omitempty"`
	Data  hexutil.Bytes `json:"data"`
}

func allowanceParameters(all []transfer.Allowance) ([]allowanceParameter, error) {
	allowances := make([]allowanceParameter, len(all))
	for n, a := range all {
		query, err := transfer.AllowanceCall(a.Owner, a.Spender)
		if err != nil {
			return nil, err
		}
		allowances[n] = allowanceParameter{
			Query: callParameter{To: a.Token.Address, Data: query}, Amount: (*hexutil.Big)(a.Amount),
			Reset: callParameter{To: a.Reset.To, Value: (*hexutil.Big)(a.Reset.Value), Data: a.Reset.Data},
		}
	}
	return allowances, nil
}

// addChainParameter is the parameter of wallet_addEthereumChain (EIP-3085).
type addChainParameter struct {
	ChainID        string         `json:"chainId"`
	ChainName      string         `json:"chainName"`
	NativeCurrency nativeCurrency `json:"nativeCurrency"`
	RPCURLs        []string       `json:"rpcUrls"`
	// ExplorerURLs are https alone: wallets refuse a chain with any other.
	ExplorerURLs []string `json:"blockExplorerUrls,omitempty"`
}

type nativeCurrency struct {
	Name     string `json:"name"`
	Symbol   string `json:"symbol"`
	Decimals uint8  `json:"decimals"`
}

// addChainParameter returns nil if the registry has no public RPC URL of the chain, which a wallet needs to add it.
func (c *console) addChainParameter(id caip.ChainID) *addChainParameter {
	known, ok := c.Registry.Current().Chain(id)
	if !ok || len(known.RPCURLs) == 0 {
		return nil
	}
	number, _ := id.Number() // the registry has eip155 chains only
	coin := known.NativeCurrency
	var explorers []string
	if strings.HasPrefix(known.Explorer, "https://") {
		explorers = []string{known.Explorer}
	}
	return &addChainParameter{
		ChainID: fmt.Sprintf("%#x", number), ChainName: known.Name, RPCURLs: known.RPCURLs, ExplorerURLs: explorers,
		NativeCurrency: nativeCurrency{Name: cmp.Or(coin.Name, coin.Symbol), Symbol: coin.Symbol, Decimals: coin.Decimals},
	}
}
