package console

import (
	"encoding/json"
	"fmt"

	"intents.internal/core/representation"
	"intents.internal/core/transfer"
)

// sendView is a transaction that a wallet of the browser can send.
type sendView struct {
	// Params is what the script send.js is told, as JSON.
	Params string
	Tx     *transfer.Tx
	Chain  string
	// Watched means that the chain's nodes can be asked what the transaction would do.
	Watched bool
	// Refund is a transaction that refunds the intent and is not reported.
	Refund bool
}

// sendView is nil for no transaction.
func (c *console) sendView(intent *transfer.Intent, tx *transfer.Tx) (*sendView, error) {
	if tx == nil {
		return nil, nil
	}
	v := &sendView{Tx: tx, Chain: c.chainName(tx.Chain)}
	if c.Chains != nil {
		_, v.Watched = c.Chains.Chain(tx.Chain)
	}
	params, err := json.Marshal(struct {
		ID    string                   `json:"id"`
		Chain string                   `json:"chain"`
		Calls representation.SendCalls `json:"calls"`
	}{intent.ID.String(), v.Chain, representation.NewTx(tx).Calls})
	if err != nil {
		return nil, fmt.Errorf("write the transaction of transfer %s: %w", intent.ID, err)
	}
	v.Params = string(params)
	return v, nil
}
