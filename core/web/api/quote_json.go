package api

import (
	"time"

	"github.com/google/uuid"

	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
)

// quoteJSON is a quote. It shows no contract and nothing else of a provider's answer than amounts and times.
type quoteJSON struct {
	ID          uuid.UUID     `json:"id"`
	Provider    string        `json:"provider"`
	Scheme      string        `json:"scheme"`
	Deployment  string        `json:"deployment"`
	Type        transfer.Type `json:"type"`
	Kind        quote.Kind    `json:"kind"`
	Source      legJSON       `json:"source"`
	Destination legJSON       `json:"destination"`
	// Deadline is that of the intent that the quote makes.
	Deadline transfer.Timestamp `json:"deadline"`
	// Fees is never nil, so that it is written as [] and not as null.
	Fees []feeJSON `json:"fees"`
	// EstimatedSeconds is nil if the provider says nothing.
	EstimatedSeconds *int64             `json:"estimatedSeconds"`
	CreatedAt        transfer.Timestamp `json:"createdAt"`
	ExpiresAt        transfer.Timestamp `json:"expiresAt"`
	// TransferID is the intent that the quote made, left out before.
	TransferID uuid.UUID `json:"transferId,omitzero"`
}

type legJSON struct {
	Account string `json:"account"`
	Token   string `json:"token"`
	Amount  string `json:"amount"`
}

type feeJSON struct {
	Kind     string `json:"kind"`
	Token    string `json:"token"`
	Amount   string `json:"amount"`
	Included bool   `json:"included"`
}

func newQuoteJSON(q quote.Quote) quoteJSON {
	answer := quoteJSON{
		ID: q.ID, Provider: q.Provider, Scheme: q.Settlement.Scheme, Deployment: q.Settlement.Deployment, Type: q.Type, Kind: q.Kind,
		Source: newLegJSON(q.Source), Destination: newLegJSON(q.Destination), Deadline: transfer.NewTimestamp(q.Deadline),
		Fees:      route.Each(q.Fees, func(f quote.Fee) feeJSON { return feeJSON{f.Kind, f.Token.String(), f.Amount.String(), f.Included} }),
		CreatedAt: transfer.NewTimestamp(q.CreatedAt), ExpiresAt: transfer.NewTimestamp(q.ExpiresAt), TransferID: q.TransferID,
	}
	if seconds := int64(q.Duration / time.Second); seconds > 0 {
		answer.EstimatedSeconds = &seconds
	}
	return answer
}

func newLegJSON(l transfer.Leg) legJSON {
	return legJSON{Account: l.Account.String(), Token: l.Token.String(), Amount: l.Amount.String()}
}
