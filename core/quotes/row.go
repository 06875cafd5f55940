package quotes

import (
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/intents"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

type row struct {
	bun.BaseModel `bun:"table:quotes,alias:quotes"`
	intents.Sides

	AccountID        uuid.UUID           `bun:"account_id,pk"`
	ID               uuid.UUID           `bun:"id,pk"`
	Environment      network.Environment `bun:"environment"`
	Provider         string              `bun:"provider"`
	Kind             quote.Kind          `bun:"kind"`
	Type             transfer.Type       `bun:"type"`
	Deadline         time.Time           `bun:"deadline"`
	DefaultDeadline  bool                `bun:"default_deadline"`
	OrderScheme      string              `bun:"order_scheme"`
	Deployment       string              `bun:"deployment"`
	InputSettler     string              `bun:"input_settler"`
	OutputSettler    string              `bun:"output_settler"`
	InputOracle      string              `bun:"input_oracle"`
	OutputOracle     string              `bun:"output_oracle"`
	Expires          time.Time           `bun:"expires"`
	Fees             []fee               `bun:"fees,type:jsonb"`
	EstimatedSeconds int                 `bun:"estimated_seconds,nullzero"`
	CreatedAt        time.Time           `bun:"created_at"`
	ExpiresAt        time.Time           `bun:"expires_at"`
	TransferID       uuid.UUID           `bun:"transfer_id,nullzero"`
}

type fee struct {
	Kind     string `json:"kind"`
	Token    string `json:"token"`
	Amount   string `json:"amount"`
	Included bool   `json:"included"`
}

func newRow(q quote.Quote) row {
	r := row{
		AccountID: q.AccountID, ID: q.ID, Environment: q.Environment, Provider: q.Provider, Kind: q.Kind, Type: q.Type,
		Sides:    intents.NewSides(q.Source, q.Destination),
		Deadline: q.Deadline, DefaultDeadline: q.DefaultDeadline, OrderScheme: q.Settlement.Scheme, Deployment: q.Settlement.Deployment,
		InputSettler: q.Settlement.InputSettler, OutputSettler: q.Settlement.OutputSettler,
		InputOracle: q.Settlement.InputOracle, OutputOracle: q.Settlement.OutputOracle, Expires: q.Settlement.Expires,
		Fees: []fee{}, EstimatedSeconds: int(q.Duration / time.Second), CreatedAt: q.CreatedAt, ExpiresAt: q.ExpiresAt, TransferID: q.TransferID,
	}
	for _, f := range q.Fees {
		r.Fees = append(r.Fees, fee{f.Kind, f.Token.String(), f.Amount.String(), f.Included})
	}
	return r
}

func (r row) quote() (quote.Quote, error) {
	source, destination, err := r.Legs()
	if err != nil {
		return quote.Quote{}, fmt.Errorf("read quote %s: %w", r.ID, err)
	}
	q := quote.Quote{
		ID: r.ID, AccountID: r.AccountID, Environment: r.Environment, Provider: r.Provider, Kind: r.Kind, Type: r.Type,
		Source: source, Destination: destination, Deadline: r.Deadline.UTC(), DefaultDeadline: r.DefaultDeadline,
		Settlement: transfer.Settlement{
			Scheme: r.OrderScheme, Deployment: r.Deployment, InputSettler: r.InputSettler, OutputSettler: r.OutputSettler,
			InputOracle: r.InputOracle, OutputOracle: r.OutputOracle, Expires: r.Expires.UTC(),
		},
		Duration: time.Duration(r.EstimatedSeconds) * time.Second, CreatedAt: r.CreatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(), TransferID: r.TransferID,
	}
	for _, f := range r.Fees {
		token, err := caip.ParseAccountID(f.Token)
		amount, ok := new(big.Int).SetString(f.Amount, 10)
		if err != nil || !ok {
			return quote.Quote{}, fmt.Errorf("read the fees of quote %s: %+v", r.ID, f)
		}
		q.Fees = append(q.Fees, quote.Fee{Kind: f.Kind, Token: token, Amount: amount, Included: f.Included})
	}
	return q, nil
}
