package route

import (
	"errors"
	"net/http"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/core/web/apierror"
	"intents.internal/pkg/wire"
)

// Error is an error with its public status and body, a wire.Error or another JSON shape with a code and a message.
type Error struct {
	Status int
	// Body is written as JSON.
	Body any
	// retryAfter is the least Retry-After in seconds, 0 for none.
	retryAfter int
	// repeated is that of apierror.Error.
	repeated bool
}

func (e *Error) Error() string { return http.StatusText(e.Status) }

// NewError returns an error without details.
func NewError(status int, code wire.Code, message string) *Error {
	return &Error{Status: status, Body: wire.Error{Code: code, Message: message}}
}

// Unavailable is a 503 that a client should retry after a second at least.
func Unavailable(message string) *Error {
	e := NewError(http.StatusServiceUnavailable, wire.ServiceUnavailable, message)
	e.retryAfter = 1
	return e
}

// limited returns the 429 for an attempt over a limit.
func limited(e *identity.LimitedError) *Error {
	return &Error{
		Status: http.StatusTooManyRequests,
		Body: wire.Error{
			Code: wire.RateLimited, Message: "Too many tries were made. Wait as long as Retry-After says, then try again.",
			Details: wire.RateLimitDetails{TryAgainIn: max(1, roundUp(e.RetryAfter, time.Millisecond))},
		},
		retryAfter: int(max(1, roundUp(e.RetryAfter, time.Second))),
	}
}

// roundUp returns d in units, rounded up so that a client that waits this long is admitted.
func roundUp(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

// TooLarge is the 413 for a body of more than limit bytes.
func TooLarge(limit int) *Error {
	return &Error{Status: http.StatusRequestEntityTooLarge, Body: wire.NewPayloadTooLarge(limit)}
}

// Invalid is the 400 for a request with these faults.
func Invalid(issues ...wire.Issue) *Error {
	return &Error{Status: http.StatusBadRequest, Body: wire.NewInvalidRequest(issues)}
}

var (
	// ErrNotFound is for a path without a route.
	ErrNotFound = NewError(http.StatusNotFound, wire.NotFound, "There is nothing at this path.")
	// ErrMediaType is for a body that is not JSON.
	ErrMediaType = NewError(http.StatusUnsupportedMediaType, wire.UnsupportedMediaType, "Send the body as application/json.")

	errNotGateway = NewError(http.StatusUnauthorized, wire.NotAGateway, "Only gateways may call this address; call the gateway's.")
)

// Fallback is a route's 500 for an error without a public one. The zero value is INTERNAL_ERROR.
type Fallback struct {
	Code    wire.Code
	Message string
}

// internalFallback is the fallback of routes without one of their own.
var internalFallback = Fallback{Code: wire.InternalError, Message: "Something went wrong here; try again later."}

// toError maps an error to its status and body. The cause of a 5xx is only logged.
func toError(err error, fallback Fallback) *Error {
	var public *Error
	var environment *intents.EnvironmentError
	var batch *intents.BatchError
	var rejection *transfer.Rejection
	var invalidField *account.InvalidError
	var rateLimited *identity.LimitedError
	switch {
	case errors.As(err, &public):
		return public
	case errors.As(err, &environment):
		body := wire.NewChainNotAllowed(environment.Chain, environment.Environment, environment.Key)
		if environment.Path != "" {
			body.Details = &wire.PathDetails{Path: environment.Path}
		}
		return &Error{Status: http.StatusForbidden, Body: body}
	case errors.As(err, &batch):
		return batchError(batch, fallback)
	case errors.Is(err, intents.ErrBatchTooLarge):
		return &Error{Status: http.StatusUnprocessableEntity, Body: wire.NewBatchTooLarge(wire.MaxTransferBatch)}
	case errors.As(err, &rejection):
		body := wire.Error{Code: rejection.Code, Message: rejection.Message}
		if rejection.Reason != "" {
			body.Details = wire.ReasonDetails{Reason: rejection.Reason}
		}
		return &Error{Status: http.StatusUnprocessableEntity, Body: body}
	case errors.As(err, &invalidField):
		return Invalid(wire.Issue{Path: "/" + invalidField.Field, Message: invalidField.Message})
	case errors.As(err, &rateLimited):
		return limited(rateLimited)
	}
	if shared, ok := apierror.Of(err); ok {
		return &Error{
			Status: shared.Status, Body: wire.Error{Code: shared.Code, Message: shared.Message, Details: shared.Details},
			retryAfter: int(roundUp(shared.RetryAfter, time.Second)), repeated: shared.Repeated,
		}
	}
	if fallback.Code == "" {
		fallback = internalFallback
	}
	return NewError(http.StatusInternalServerError, fallback.Code, fallback.Message)
}

// failuresDetails are the details of an error of several items of a batch.
type failuresDetails struct {
	Failures []failure `json:"failures"`
}

// failure is what an item of a batch would be refused with alone.
type failure struct {
	Index   int       `json:"index"`
	Code    wire.Code `json:"code"`
	Message string    `json:"message"`
}

// batchError is 422 BATCH_REJECTED for items that no intent can be made of, and 409 STATUS_CONFLICT for intents that cannot take what was reported.
func batchError(e *intents.BatchError, fallback Fallback) *Error {
	details := failuresDetails{}
	status := 0
	for _, item := range e.Refused {
		alone := toError(item.Err, fallback)
		body, _ := alone.Body.(wire.Error)
		status = max(status, alone.Status)
		details.Failures = append(details.Failures, failure{item.Index, body.Code, body.Message})
	}
	if status == http.StatusConflict {
		return &Error{Status: status, Body: wire.Error{
			Code: "STATUS_CONFLICT", Message: "The status of a transfer does not allow this, so none was changed; see details.failures.", Details: details,
		}}
	}
	return &Error{Status: status, Body: wire.Error{
		Code: "BATCH_REJECTED", Message: "Some of the transfers cannot be recorded, so none was; see details.failures.", Details: details,
	}}
}
