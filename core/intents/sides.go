package intents

import (
	"fmt"
	"math/big"

	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// Sides are the columns of the two sides of an intent or a quote.
type Sides struct {
	SourceChain        string `bun:"source_chain"`
	SourceAccount      string `bun:"source_account"`
	SourceToken        string `bun:"source_token"`
	SourceAmount       string `bun:"source_amount"`
	DestinationChain   string `bun:"destination_chain"`
	DestinationAccount string `bun:"destination_account"`
	DestinationToken   string `bun:"destination_token"`
	DestinationAmount  string `bun:"destination_amount"`
}

// NewSides returns the columns of two sides.
func NewSides(source, destination transfer.Leg) Sides {
	return Sides{
		SourceChain: source.Account.Chain.String(), SourceAccount: source.Account.Address,
		SourceToken: source.Token.Address, SourceAmount: source.Amount.String(),
		DestinationChain: destination.Account.Chain.String(), DestinationAccount: destination.Account.Address,
		DestinationToken: destination.Token.Address, DestinationAmount: destination.Amount.String(),
	}
}

// Legs returns the sides of the columns.
func (s Sides) Legs() (source, destination transfer.Leg, err error) {
	if source, err = leg(s.SourceChain, s.SourceAccount, s.SourceToken, s.SourceAmount); err != nil {
		return source, destination, fmt.Errorf("the source: %w", err)
	}
	if destination, err = leg(s.DestinationChain, s.DestinationAccount, s.DestinationToken, s.DestinationAmount); err != nil {
		return source, destination, fmt.Errorf("the destination: %w", err)
	}
	return source, destination, nil
}

func leg(chainID, accountAddress, tokenAddress, amount string) (transfer.Leg, error) {
	id, err := caip.ParseChainID(chainID)
	if err != nil {
		return transfer.Leg{}, err
	}
	units, ok := new(big.Int).SetString(amount, 10)
	if !ok {
		return transfer.Leg{}, fmt.Errorf("amount %q is not a number", amount)
	}
	return transfer.Leg{
		Account: caip.AccountID{Chain: id, Address: accountAddress},
		Token:   caip.AccountID{Chain: id, Address: tokenAddress},
		Amount:  units,
	}, nil
}
