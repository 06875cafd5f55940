package pgtest

import (
	"math/big"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/identities"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// InsertQuote stores a quote of what BridgeBody brings, which holds for an hour.
func InsertQuote(tb testing.TB, store *rooms.Rooms, known *registry.Snapshot, owner uuid.UUID, change ...func(*quote.Quote)) quote.Quote {
	tb.Helper()
	request := ParseRequest(tb, BridgeBody)
	request.Destination.Amount = ""
	now := store.Now().Truncate(time.Microsecond)
	route, err := transfer.NewRoute(now, request, known)
	if err != nil {
		tb.Fatal(err)
	}
	q := quote.Quote{
		ID: transfer.NewID(now), AccountID: owner, Environment: network.Test, Provider: "solver", Kind: quote.ExactInput, Type: route.Type,
		Source: route.Source, Destination: route.Destination, Deadline: route.Deadline, Settlement: route.Settlements[0],
		CreatedAt: now, ExpiresAt: route.Deadline,
	}
	q.Destination.Amount = big.NewInt(4)
	for _, c := range change {
		c(&q)
	}
	if err := store.Quotes.Insert(tb.Context(), identities.OfOperator, []quote.Quote{q}); err != nil {
		tb.Fatal(err)
	}
	return q
}

// NewQuotedIntent makes the intent of a quote, which it does not store.
func NewQuotedIntent(tb testing.TB, known *registry.Snapshot, q quote.Quote) *transfer.Intent {
	tb.Helper()
	leg := func(l transfer.Leg) wire.Leg {
		return wire.Leg{Account: l.Account, Token: l.Token, Amount: l.Amount.String()}
	}
	request := wire.TransferRequest{Source: leg(q.Source), Destination: leg(q.Destination), Deadline: q.Deadline, QuoteID: q.ID.String()}
	by := transfer.Caller{AccountID: q.AccountID, KeyID: uuid.New(), Environment: q.Environment}
	of := transfer.Quote{ID: q.ID, Provider: q.Provider, ExpiresAt: q.ExpiresAt}
	intent, _, err := transfer.NewQuoted(uuid.Must(uuid.NewV7()), by, request, known, q.Settlement, of)
	if err != nil {
		tb.Fatal(err)
	}
	return intent
}
