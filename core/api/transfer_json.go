package api

import (
	"fmt"
	"time"

	"intents.internal/core/representation"
	"intents.internal/core/transfer"
)

// intentJSON is the full record. Source and Destination replace those of the summary with more fields.
type intentJSON struct {
	representation.Summary
	Final       bool                     `json:"final"`
	Failure     *string                  `json:"failure"`
	Source      legJSON                  `json:"source"`
	Destination legJSON                  `json:"destination"`
	Deadline    representation.Timestamp `json:"deadline"`
	Order       orderJSON                `json:"order"`
	// Confirmations is nil while the transaction that carries the intent is in no block.
	Confirmations *confirmationsJSON `json:"confirmations"`
	Transactions  []transactionJSON  `json:"transactions"`
	Refundable    bool               `json:"refundable"`
	// Verification is "unsupported" or nil.
	Verification *string `json:"verification"`
	// Tx is nil where the transaction must not be sent.
	Tx *representation.Tx `json:"tx"`
}

type confirmationsJSON struct {
	Have      uint64 `json:"have"`
	Need      uint64 `json:"need"`
	Finalized bool   `json:"finalized"`
}

func newConfirmationsJSON(c *transfer.Confirmations) *confirmationsJSON {
	if c == nil {
		return nil
	}
	return &confirmationsJSON{c.Have, c.Need, c.Finalized}
}

type transactionJSON struct {
	Role        transfer.Role            `json:"role"`
	ChainID     string                   `json:"chainId"`
	Hash        representation.HexBytes  `json:"hash"`
	State       transfer.State           `json:"state"`
	BlockNumber *uint64                  `json:"blockNumber"`
	SeenAt      representation.Timestamp `json:"seenAt"`
}

func newTransactionJSON(t transfer.Transaction) transactionJSON {
	out := transactionJSON{Role: t.Role, ChainID: t.Chain.String(), Hash: t.Hash[:], State: t.State, SeenAt: representation.NewTimestamp(t.SeenAt)}
	if t.Block != nil {
		out.BlockNumber = &t.Block.Number
	}
	return out
}

type legJSON struct {
	Account string `json:"account"`
	Token   string `json:"token"`
	Amount  string `json:"amount"`
}

// orderJSON has every field of OrderData under its ABI name, so that a client can encode it and compute the order id.
type orderJSON struct {
	Scheme             string                  `json:"scheme"`
	OriginSettler      *string                 `json:"originSettler"`
	Sender             representation.HexBytes `json:"sender"`
	Recipient          representation.HexBytes `json:"recipient"`
	InputToken         representation.HexBytes `json:"inputToken"`
	OutputToken        representation.HexBytes `json:"outputToken"`
	AmountIn           string                  `json:"amountIn"`
	AmountOut          string                  `json:"amountOut"`
	SenderNonce        string                  `json:"senderNonce"`
	OriginDomain       uint32                  `json:"originDomain"`
	DestinationDomain  uint32                  `json:"destinationDomain"`
	DestinationSettler representation.HexBytes `json:"destinationSettler"`
	FillDeadline       uint32                  `json:"fillDeadline"`
	Data               representation.HexBytes `json:"data"`
	OrderData          representation.HexBytes `json:"orderData"`
}

// newIntentJSON is the record of an intent for a client that reads it now, without what its chains have shown.
func newIntentJSON(i *transfer.Intent, now time.Time) (intentJSON, error) {
	order, err := i.Order()
	if err != nil {
		return intentJSON{}, fmt.Errorf("write a transfer: %w", err)
	}
	tx, err := i.Tx(now)
	if err != nil {
		return intentJSON{}, err
	}
	return intentJSON{
		Summary: representation.NewSummary(i.Summary()),
		Final:   transfer.Final(i.Type, i.Status), Failure: representation.Optional(i.Failure),
		Source: newLegJSON(i.Source), Destination: newLegJSON(i.Destination), Deadline: representation.NewTimestamp(i.Deadline),
		Order: newOrderJSON(order, i.Settlement), Tx: representation.NewTx(tx), Transactions: []transactionJSON{},
	}, nil
}

func newLegJSON(l transfer.Leg) legJSON {
	return legJSON{Account: l.Account.String(), Token: l.Token.String(), Amount: l.Amount.String()}
}

func newOrderJSON(o transfer.Order, settlement transfer.Settlement) orderJSON {
	return orderJSON{
		Scheme: settlement.Scheme, OriginSettler: representation.Optional(settlement.OriginSettler),
		Sender: o.Sender[:], Recipient: o.Recipient[:], InputToken: o.InputToken[:], OutputToken: o.OutputToken[:],
		AmountIn: o.AmountIn.String(), AmountOut: o.AmountOut.String(), SenderNonce: o.SenderNonce.String(),
		OriginDomain: o.OriginDomain, DestinationDomain: o.DestinationDomain,
		DestinationSettler: o.DestinationSettler[:], FillDeadline: o.FillDeadline, Data: o.Data, OrderData: o.Encoded,
	}
}
