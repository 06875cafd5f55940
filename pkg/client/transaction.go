package client

// Transaction is a transaction for a wallet to sign: To, Value and Data where the allowances are granted, or Calls, which grant them first.
type Transaction struct {
	ChainID    int64       `json:"chainId"`
	From       string      `json:"from"`
	To         string      `json:"to"`
	Value      string      `json:"value"` // wei, in decimal
	Data       string      `json:"data"`
	Allowances []Allowance `json:"allowances"`
	// Calls are the parameter of wallet_sendCalls (EIP-5792). The first ones grant the allowances, in their order.
	Calls SendCalls `json:"calls"`
}

// Allowance is an ERC-20 allowance that a transaction needs.
type Allowance struct {
	Token   string   `json:"token"` // CAIP-10
	Owner   string   `json:"owner"`
	Spender string   `json:"spender"`
	Amount  Amount   `json:"amount"`
	Approve Approval `json:"approve"`
	// Reset is to be sent before Approve where the allowance is neither 0 nor enough, because some tokens refuse to change it otherwise.
	Reset Approval `json:"reset"`
}

// Approval is a transaction that changes an allowance.
type Approval struct {
	To    string `json:"to"`
	Value string `json:"value"`
	Data  string `json:"data"`
}

// SendCalls is the parameter of wallet_sendCalls.
type SendCalls struct {
	Version        string `json:"version"`
	ChainID        string `json:"chainId"` // hexadecimal
	From           string `json:"from"`
	AtomicRequired bool   `json:"atomicRequired"`
	Calls          []Call `json:"calls"`
}

// Call is one of several calls.
type Call struct {
	To    string `json:"to"`
	Value string `json:"value"` // hexadecimal
	Data  string `json:"data"`
}

// Order is a StandardOrder of the Open Intents Framework.
type Order struct {
	Scheme        string        `json:"scheme"`
	Deployment    *string       `json:"deployment"`
	InputSettler  string        `json:"inputSettler"`
	User          string        `json:"user"`
	Nonce         string        `json:"nonce"`
	OriginChainID int64         `json:"originChainId"`
	Expires       int64         `json:"expires"`      // Unix seconds; from then on it can be refunded
	FillDeadline  int64         `json:"fillDeadline"` // Unix seconds
	InputOracle   string        `json:"inputOracle"`
	Inputs        []OrderInput  `json:"inputs"`
	Outputs       []OrderOutput `json:"outputs"`
	Encoded       string        `json:"encoded"`
}

// OrderInput is what an order holds in escrow.
type OrderInput struct {
	Token  string `json:"token"`
	Amount Amount `json:"amount"`
}

// OrderOutput is what a solver must pay. Addresses are 32 bytes.
type OrderOutput struct {
	Oracle       string `json:"oracle"`
	Settler      string `json:"settler"`
	ChainID      int64  `json:"chainId"`
	Token        string `json:"token"`
	Amount       Amount `json:"amount"`
	Recipient    string `json:"recipient"`
	CallbackData string `json:"callbackData"`
	Context      string `json:"context"`
}
