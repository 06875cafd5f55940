package api

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

// apiError is an error with its public status and body, a wire.Error or another JSON shape with a code and a message.
type apiError struct {
	status int
	body   any
	// retryAfter is the least Retry-After in seconds, 0 for none.
	retryAfter int
	// repeated is that of apierror.Error.
	repeated bool
}

func (e *apiError) Error() string { return http.StatusText(e.status) }

func newError(status int, code wire.Code, message string) *apiError {
	return &apiError{status: status, body: wire.Error{Code: code, Message: message}}
}

// unavailable is a 503 that a client should retry after a second at least.
func unavailable(message string) *apiError {
	e := newError(http.StatusServiceUnavailable, wire.ServiceUnavailable, message)
	e.retryAfter = 1
	return e
}

// limited returns the 429 for an attempt over a limit.
func limited(e *identity.LimitedError) *apiError {
	return &apiError{
		status: http.StatusTooManyRequests,
		body: wire.Error{
			Code: wire.RateLimited, Message: "Too many tries were made. Wait as long as Retry-After says, then try again.",
			Details: wire.RateLimitDetails{TryAgainIn: max(1, roundUp(e.RetryAfter, time.Millisecond))},
		},
		retryAfter: int(max(1, roundUp(e.RetryAfter, time.Second))),
	}
}

// roundUp returns d in units, rounded up so that a client that waits this long is admitted.
func roundUp(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

// tooLarge is the 413 for a body of more than limit bytes.
func tooLarge(limit int) *apiError {
	return &apiError{status: http.StatusRequestEntityTooLarge, body: wire.NewPayloadTooLarge(limit)}
}

func invalid(issues ...wire.Issue) *apiError {
	return &apiError{status: http.StatusBadRequest, body: wire.NewInvalidRequest(issues)}
}

var (
	errNotGateway  = newError(http.StatusUnauthorized, wire.NotAGateway, "Only gateways may call this address; call the gateway's.")
	errNoRoute     = newError(http.StatusNotFound, wire.NotFound, "There is nothing at this path.")
	errMethod      = newError(http.StatusMethodNotAllowed, wire.MethodNotAllowed, "The path takes another method; see Allow.")
	errCrossOrigin = newError(http.StatusForbidden, "CROSS_ORIGIN_REQUEST", "The request came from another site; open this one and try again.")
	errMediaType   = newError(http.StatusUnsupportedMediaType, wire.UnsupportedMediaType, "Send the body as application/json.")
)

// fallbackError is a route's 500 for an error without a public one. The zero value is INTERNAL_ERROR.
type fallbackError struct {
	code    wire.Code
	message string
}

var (
	internalFallback = fallbackError{code: wire.InternalError, message: "Something went wrong here; try again later."}
	tokenFallback    = fallbackError{code: "TokenRegistryServiceError", message: "The token registry could not be read; try again later."}
	transferFallback = fallbackError{code: "TransferServiceError", message: "The transfer service failed; try again later."}
	webhookFallback  = fallbackError{code: "WebhookServiceError", message: "The webhook service failed; try again later."}
)

// toAPIError maps an error to its status and body. The cause of a 5xx is only logged.
func toAPIError(err error, fallback fallbackError) *apiError {
	var public *apiError
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
		return &apiError{status: http.StatusForbidden, body: body}
	case errors.As(err, &batch):
		return batchError(batch)
	case errors.Is(err, intents.ErrBatchTooLarge):
		return &apiError{status: http.StatusUnprocessableEntity, body: wire.NewBatchTooLarge(wire.MaxTransferBatch)}
	case errors.As(err, &rejection):
		body := wire.Error{Code: rejection.Code, Message: rejection.Message}
		if rejection.Reason != "" {
			body.Details = wire.ReasonDetails{Reason: rejection.Reason}
		}
		return &apiError{status: http.StatusUnprocessableEntity, body: body}
	case errors.As(err, &invalidField):
		return invalid(wire.Issue{Path: "/" + invalidField.Field, Message: invalidField.Message})
	case errors.As(err, &rateLimited):
		return limited(rateLimited)
	}
	if shared, ok := apierror.Of(err); ok {
		return &apiError{
			status: shared.Status, body: wire.Error{Code: shared.Code, Message: shared.Message, Details: shared.Details},
			retryAfter: int(roundUp(shared.RetryAfter, time.Second)), repeated: shared.Repeated,
		}
	}
	if fallback.code == "" {
		fallback = internalFallback
	}
	return newError(http.StatusInternalServerError, fallback.code, fallback.message)
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
func batchError(e *intents.BatchError) *apiError {
	details := failuresDetails{}
	status := 0
	for _, item := range e.Refused {
		alone := toAPIError(item.Err, transferFallback)
		body, _ := alone.body.(wire.Error)
		status = max(status, alone.status)
		details.Failures = append(details.Failures, failure{item.Index, body.Code, body.Message})
	}
	if status == http.StatusConflict {
		return &apiError{status: status, body: wire.Error{
			Code: "STATUS_CONFLICT", Message: "The status of a transfer does not allow this, so none was changed; see details.failures.", Details: details,
		}}
	}
	return &apiError{status: status, body: wire.Error{
		Code: "BATCH_REJECTED", Message: "Some of the transfers cannot be recorded, so none was; see details.failures.", Details: details,
	}}
}
