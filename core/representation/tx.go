package representation

import (
	"encoding/json"
	"fmt"

	"intents.internal/core/transfer"
)

// Tx is what a wallet signs. chainId is the EIP-155 number that transactions carry, not the CAIP-2 form.
type Tx struct {
	ChainID    json.Number `json:"chainId"`
	From       string      `json:"from"`
	To         string      `json:"to"`
	Value      string      `json:"value"`
	Data       HexBytes    `json:"data"`
	Allowances []Allowance `json:"allowances"`
	Calls      SendCalls   `json:"calls"`
}

// Allowance is an ERC-20 allowance and the call that grants it.
type Allowance struct {
	Token   string `json:"token"`
	Owner   string `json:"owner"`
	Spender string `json:"spender"`
	Amount  string `json:"amount"`
	Approve Call   `json:"approve"`
}

// Call is a call of a transaction; Value is in wei.
type Call struct {
	To    string   `json:"to"`
	Value string   `json:"value"`
	Data  HexBytes `json:"data"`
}

// SendCalls is the parameter of wallet_sendCalls (EIP-5792), whose numbers are hexadecimal. Wallets that cannot execute the calls as
// one transaction send them one after the other, as AtomicRequired is false.
type SendCalls struct {
	Version        string `json:"version"`
	ChainID        string `json:"chainId"`
	From           string `json:"from"`
	AtomicRequired bool   `json:"atomicRequired"`
	Calls          []Call `json:"calls"`
}

// NewTx is nil for no transaction.
func NewTx(tx *transfer.Tx) *Tx {
	if tx == nil {
		return nil
	}
	out := &Tx{
		ChainID: json.Number(tx.Chain.Reference), From: tx.From, To: tx.To, Value: tx.Value.String(), Data: tx.Data,
		Allowances: []Allowance{}, Calls: newSendCalls(tx),
	}
	for _, a := range tx.Allowances {
		out.Allowances = append(out.Allowances, Allowance{
			Token: a.Token.String(), Owner: a.Owner, Spender: a.Spender, Amount: a.Amount.String(),
			Approve: Call{To: a.Approve.To, Value: a.Approve.Value.String(), Data: a.Approve.Data},
		})
	}
	return out
}

func newSendCalls(tx *transfer.Tx) SendCalls {
	number, _ := tx.Chain.Number() // the registry has eip155 chains only
	out := SendCalls{Version: "2.0.0", ChainID: fmt.Sprintf("%#x", number), From: tx.From}
	for _, c := range tx.Calls() {
		out.Calls = append(out.Calls, Call{To: c.To, Value: fmt.Sprintf("%#x", c.Value), Data: c.Data})
	}
	return out
}
