package screening

import (
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
)

// Stage is what was asked for or seen.
type Stage string

// The five stages.
const (
	AtCreation Stage = "create"
	AtQuote    Stage = "quote"
	// HandOut is a transaction to sign of an intent that exists.
	AtHandOut Stage = "hand-out"
	// Chain is a transaction that was reported, or an effect that was seen. It is recorded as any other.
	OnChain Stage = "chain"
	// SIWE is a wallet that signs in or is linked.
	AtSignIn Stage = "siwe"
)

// Stages are all stages.
var Stages = []Stage{AtCreation, AtQuote, AtHandOut, OnChain, AtSignIn}

// Side is whose the address is.
type Side string

// The sides of an intent, and the wallet of a sign-in.
const (
	SourceSide      Side = "source"
	DestinationSide Side = "destination"
	WalletSide      Side = "wallet"
)

// Path is the JSON Pointer to the address in a request or a record.
func (s Side) Path() string {
	if s == WalletSide {
		return "/walletAddress"
	}
	return "/" + string(s) + "/account"
}

// Hit is an address that is listed, where it was met.
type Hit struct {
	// AccountID, KeyID and IntentID are nil where there is none or it is not known.
	AccountID, KeyID uuid.UUID
	// Environment is empty for a wallet, which signs in to both.
	Environment network.Environment
	Stage       Stage
	Side        Side
	Address     string
	// Label is the list's, empty for none.
	Label     string
	IntentID  uuid.UUID
	RequestID string
	At        time.Time
}

// ID is the same for all hits of an account, an address and a stage in an hour: one of them is kept.
func (h Hit) ID() uuid.UUID {
	return account.HourlyID(h.At, "screening hit", h.AccountID.String(), h.Address, string(h.Stage))
}
