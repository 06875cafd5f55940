package console

import (
	"cmp"
	"encoding/json"
	"fmt"

	"intents.internal/core/intent/representation"
	"intents.internal/core/intent/transfer"
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
	// Refund is a transaction that refunds the intent and is not reported.
	Refund bool
}

// sendView returns nil for no transaction.
func (c *console) sendView(intent *transfer.Intent, tx *transfer.Tx) (*sendView, error) {
	if tx == nil {
		return nil, nil
	}
	v := &sendView{Tx: tx, Chain: c.chainName(tx.Chain), Watched: c.Intents.CanPreflight(tx.Chain)}
	params, err := json.Marshal(struct {
		ID       string             `json:"id"`
		Chain    string             `json:"chain"`
		AddChain *addChainParameter `json:"addChain"`
		Calls    json.RawMessage    `json:"calls"`
	}{intent.ID.String(), v.Chain, c.addChainParameter(tx.Chain), representation.AppendSendCalls(nil, tx)})
	if err != nil {
		return nil, fmt.Errorf("write the transaction of transfer %s: %w", intent.ID, err)
	}
	v.Params = string(params)
	return v, nil
}

// addChainParameter is the parameter of wallet_addEthereumChain (EIP-3085).
type addChainParameter struct {
	ChainID        string         `json:"chainId"`
	ChainName      string         `json:"chainName"`
	NativeCurrency nativeCurrency `json:"nativeCurrency"`
	RPCURLs        []string       `json:"rpcUrls"`
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
	return &addChainParameter{
		ChainID: fmt.Sprintf("%#x", number), ChainName: known.Name, RPCURLs: known.RPCURLs,
		NativeCurrency: nativeCurrency{Name: cmp.Or(coin.Name, coin.Symbol), Symbol: coin.Symbol, Decimals: coin.Decimals},
	}
}
