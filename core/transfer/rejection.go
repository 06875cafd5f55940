package transfer

import (
	"fmt"

	"intents.internal/pkg/wire"
)

// The reasons why a well-formed request is rejected.
const (
	UnsupportedChain            wire.Code = "UNSUPPORTED_CHAIN"
	ChainNotWatched             wire.Code = "CHAIN_NOT_WATCHED"
	UnknownToken                wire.Code = "UNKNOWN_TOKEN"
	ChainMismatch               wire.Code = "CHAIN_MISMATCH"
	SelfTransfer                wire.Code = "SELF_TRANSFER"
	InvalidAmount               wire.Code = "INVALID_AMOUNT"
	InvalidRecipient            wire.Code = "INVALID_RECIPIENT"
	DestinationAmountRequired   wire.Code = "DESTINATION_AMOUNT_REQUIRED"
	DestinationAmountNotAllowed wire.Code = "DESTINATION_AMOUNT_NOT_ALLOWED"
	InvalidDeadline             wire.Code = "INVALID_DEADLINE"
	SettlerNotConfigured        wire.Code = "SETTLER_NOT_CONFIGURED"
	NativeNotSupported          wire.Code = "NATIVE_NOT_SUPPORTED"
	RouteUnsupported            wire.Code = "ROUTE_UNSUPPORTED"
	SigningNotSupported         wire.Code = "SIGNING_NOT_SUPPORTED"
	SubmitNotSupported          wire.Code = "SUBMIT_NOT_SUPPORTED"
)

// Rejection is the reason why a request is rejected, with a message for the client.
type Rejection struct {
	Code    wire.Code
	Message string
	// Path is a JSON Pointer (RFC 6901) to the invalid member of the request, empty if no single member is invalid.
	Path string
	// Reason is one word on what cannot be signed, for SigningNotSupported alone.
	Reason string
}

func (r *Rejection) Error() string { return string(r.Code) + ": " + r.Message }

func reject(code wire.Code, form string, args ...any) *Rejection {
	return &Rejection{Code: code, Message: fmt.Sprintf(form, args...)}
}

// at sets the path of the invalid member.
func (r *Rejection) at(path string) *Rejection {
	r.Path = path
	return r
}

// because sets the reason.
func (r *Rejection) because(reason string) *Rejection {
	r.Reason = reason
	return r
}

// RejectSubmit rejects a request to hand an order to a solver that takes none.
func RejectSubmit() *Rejection {
	return reject(SubmitNotSupported, "Only an order of a quote can be submitted, and only to a provider of quotes that takes orders. "+
		"Use such a quote, or leave submit out and send the transaction of GET /v2/transfers/{id}/relay.").at("/submit")
}
