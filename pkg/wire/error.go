// Package wire is the vocabulary that gateway and core share with each other and with clients: error bodies and codes, identity
// headers, the internal API between the two, and the strict decoders of requests.
//
// Both services parse a request with this decoder, because a difference between two parsers could be used to bypass the checks of
// one of them.
package wire

import (
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Code is the machine-readable name of an error. Clients branch on it, so a code never changes its meaning.
type Code string

// These are the codes that either service may respond with. Core defines its own codes beside its rules.
const (
	InvalidAPIKey         Code = "INVALID_API_KEY"
	ChainNotAllowedForKey Code = "CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT"
	InsufficientScope     Code = "INSUFFICIENT_SCOPE"
	NetworkNotAllowed     Code = "NETWORK_NOT_ALLOWED"
	InvalidClientToken    Code = "INVALID_CLIENT_TOKEN"
	ClientTokenNotAllowed Code = "CLIENT_TOKEN_NOT_ALLOWED"
	OriginNotAllowed      Code = "ORIGIN_NOT_ALLOWED"
	RateLimited           Code = "RATE_LIMITED"
	InvalidRequest        Code = "INVALID_REQUEST"
	PayloadTooLarge       Code = "PAYLOAD_TOO_LARGE"
	UnsupportedMediaType  Code = "UNSUPPORTED_MEDIA_TYPE"
	NotFound              Code = "NOT_FOUND"
	MethodNotAllowed      Code = "METHOD_NOT_ALLOWED"
	ServiceUnavailable    Code = "SERVICE_UNAVAILABLE"
	UpstreamTimeout       Code = "UPSTREAM_TIMEOUT"
	OutcomeUnknown        Code = "OUTCOME_UNKNOWN"
	InternalError         Code = "INTERNAL_ERROR"
	CursorExpired         Code = "CURSOR_EXPIRED"
	TooManyPolls          Code = "TOO_MANY_POLLS"
	AmountRequired        Code = "AMOUNT_REQUIRED"
	AmountsConflict       Code = "AMOUNTS_CONFLICT"

	IdempotencyKeyRequired Code = "IDEMPOTENCY_KEY_REQUIRED"
	BatchTooLarge          Code = "BATCH_TOO_LARGE"

	// NotAGateway is core's 401 for a request without the shared secret, which it refuses (CoreRefused). No client gets it.
	NotAGateway Code = "NOT_A_GATEWAY"
)

// CodeOf returns the code of an error's body, empty if the body has none.
func CodeOf(body []byte) Code {
	var e struct{ Code Code }
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	return e.Code
}

// Error is the body of every error response except ChainNotAllowed. AppendErrorBody gives both the id of the request.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Details any    `json:"details,omitempty"`
}

// AppendErrorBody appends an error's body, a JSON object with members, and gives it the request's id as its last member.
func AppendErrorBody[T text](b, body []byte, requestID T) []byte {
	b = append(b, body[:len(body)-1]...)
	b = append(b, `,"requestId":`...)
	b, _ = jsontext.AppendQuote(b, requestID) // its error is of invalid UTF-8, which it replaces
	return append(b, '}')
}

// RateLimitDetails are the details of RATE_LIMITED.
type RateLimitDetails struct {
	// TryAgainIn is the time until the next request is allowed, in milliseconds.
	TryAgainIn int64 `json:"tryAgainIn"`
}

// SizeDetails are the details of PAYLOAD_TOO_LARGE.
type SizeDetails struct {
	// MaxBytes is how long the body may be.
	MaxBytes int `json:"maxBytes"`
}

// NewPayloadTooLarge returns the body of a 413 for a body of more than so many bytes.
func NewPayloadTooLarge(maxBytes int) Error {
	return Error{
		Code: PayloadTooLarge, Message: fmt.Sprintf("The body must not be longer than %d bytes.", maxBytes), Details: SizeDetails{MaxBytes: maxBytes},
	}
}

// StatusDetails are the details of STATUS_CONFLICT.
type StatusDetails struct {
	// Status is the intent's status, which does not allow what was asked.
	Status string `json:"status"`
}

// ReasonDetails are the details of SIGNING_NOT_SUPPORTED.
type ReasonDetails struct {
	// Reason is what cannot be signed: native, token or settlement.
	Reason string `json:"reason"`
}

// ScopeDetails are the details of INSUFFICIENT_SCOPE.
type ScopeDetails struct {
	// Scope is the name of the scope that the request needs.
	Scope string `json:"scope"`
}

// NetworkDetails are the details of NETWORK_NOT_ALLOWED.
type NetworkDetails struct {
	// Address is the client's address.
	Address string `json:"address"`
}

// Issue is one fault in a request. Path is a JSON Pointer (RFC 6901) into the body, empty for the body as a whole, or the name of
// a query parameter or header.
type Issue struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// NewInvalidRequest returns the body of a 400 that lists the issues.
func NewInvalidRequest(issues []Issue) Error {
	return Error{
		Code:    InvalidRequest,
		Message: "The request is not valid; see details.issues.",
		Details: InvalidRequestDetails{Issues: issues},
	}
}

// InvalidRequestDetails are the details of INVALID_REQUEST.
type InvalidRequestDetails struct {
	Issues []Issue `json:"issues"`
}
