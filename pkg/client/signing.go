package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Signing is what the user of an intent signs in place of a transaction: any account can send the transaction that Transfers.Relay then has.
type Signing struct {
	Scheme SigningScheme `json:"scheme"`
	// TypedData is what to sign, nil once the intent cannot be signed any more.
	TypedData *TypedData `json:"typedData"`
	// Digest is the hash of TypedData (EIP-712): compute it from that before you sign. It is nil while the service has no domain of the token.
	Digest *string `json:"digest"`
	// ExpiresAt is until when a signature is taken.
	ExpiresAt time.Time `json:"expiresAt"`
	// Allowance is the one that Permit2 needs, nil for another scheme.
	Allowance *Allowance `json:"allowance"`
	// Permit grants the allowance by a signature (EIP-2612), which anyone can send to the token, see TypedData.TokenCall; nil where the token takes
	// none.
	Permit *TypedData `json:"permit"`
	// SignedAt is when the last valid signature arrived, nil before the first.
	SignedAt *time.Time `json:"signedAt"`
	// Submitted is what became of handing the order to the solver, nil before.
	Submitted *Submission `json:"submitted"`
	// Revoke makes the signatures of a cancelled intent worthless, nil where none was given.
	Revoke *Revocation `json:"revoke"`
}

// Submission is the one attempt to hand a signed order to a solver. The solver does not fill what failed with it, whoever opens the order.
type Submission struct {
	// Provider is that of the quote.
	Provider string           `json:"provider"`
	Status   SubmissionStatus `json:"status"`
	At       time.Time        `json:"at"`
	// Detail is what the solver says of it, nil for nothing.
	Detail *string `json:"detail"`
}

// SubmissionStatus is what a solver makes of an order, or a QuoteFailureCode where it does not say.
type SubmissionStatus string

// The statuses of a solver's own answers. Received promises nothing; the service asks about the order until it is opened, and then it may have Failed.
const (
	SubmissionReceived SubmissionStatus = "received"
	SubmissionRejected SubmissionStatus = "rejected"
	SubmissionError    SubmissionStatus = "error"
	SubmissionFailed   SubmissionStatus = "failed"
)

// The statuses of an order whose solver did not say what it makes of it, by the codes of quotes.
const (
	SubmissionTimeout     SubmissionStatus = "PROVIDER_TIMEOUT" // also while its answer is not known
	SubmissionUnavailable SubmissionStatus = "PROVIDER_UNAVAILABLE"
	SubmissionRateLimited SubmissionStatus = "PROVIDER_RATE_LIMITED"
	SubmissionRefused     SubmissionStatus = "PROVIDER_REFUSED"
	SubmissionInvalid     SubmissionStatus = "PROVIDER_INVALID"
)

// TypedData is what a wallet signs (EIP-712). Its JSON is the parameter of eth_signTypedData_v4, and go-ethereum's apitypes.TypedData reads it.
type TypedData struct {
	// Types are all types that PrimaryType needs, with EIP712Domain.
	Types       map[string][]TypedDataMember `json:"types"`
	Domain      TypedDataDomain              `json:"domain"`
	PrimaryType string                       `json:"primaryType"`
	// Message has the members of PrimaryType; numbers of more than 53 bits are decimal strings.
	Message json.RawMessage `json:"message"`
}

// TypedDataMember is a member of a type.
type TypedDataMember struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// TypedDataDomain is the contract that a signature is for. Permit2 has no version.
type TypedDataDomain struct {
	Name              string `json:"name"`
	Version           string `json:"version,omitempty"`
	ChainID           int64  `json:"chainId"`
	VerifyingContract string `json:"verifyingContract"`
}

// Revocation makes signatures worthless. One of its members is nil: Transaction is one of the user, and TypedData is what the user signs for the
// token's cancelAuthorization, which anyone can send, see TypedData.TokenCall.
type Revocation struct {
	*Transaction
	*TypedData
}

// SubmitSignature gives the signature of an intent's Signing.TypedData, 0x and hexadecimal. Another valid one replaces it. It is tried once.
// CodeSignatureInvalid means that it is not the user's.
func (s *Transfers) SubmitSignature(ctx context.Context, id, signature string) (*Transfer, error) {
	body := SubmitSignature{Signature: signature}
	return call[Transfer](ctx, s.c, request{method: http.MethodPost, path: transferPath(id, "/signature"), body: body})
}

// SubmitSignature is the body of SubmitSignature.
type SubmitSignature struct {
	Signature string `json:"signature"`
}

// Relay returns the transaction that carries a signed intent out. Any account may send it, and its hash is to be reported by Report.
// CodeNotSigned means that the user has yet to sign, and CodeStatusConflict that it is too late.
func (s *Transfers) Relay(ctx context.Context, id string) (*Relay, error) {
	return call[Relay](ctx, s.c, request{method: http.MethodGet, path: transferPath(id, "/relay")})
}

// Relay has the transaction of a signed intent.
type Relay struct {
	Tx RelayTransaction `json:"tx"`
}

// RelayTransaction is a transaction that any account may send.
type RelayTransaction struct {
	ChainID int64  `json:"chainId"`
	To      string `json:"to"`
	Value   string `json:"value"` // wei, in decimal
	Data    string `json:"data"`
}
