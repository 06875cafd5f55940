package api

import (
	"context"
	"errors"
	"net/http"

	"intents.internal/core/account"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/wire"
)

// refusal is an error that is the client's to know: its status and its body. Body is a wire.Error or another JSON shape
// with a code and a message.
type refusal struct {
	status int
	body   any
}

func (r *refusal) Error() string { return http.StatusText(r.status) }

func refuse(status int, code wire.Code, message string) *refusal {
	return &refusal{status: status, body: wire.Error{Code: code, Message: message}}
}

func invalid(issues ...wire.Issue) *refusal {
	return &refusal{status: http.StatusBadRequest, body: wire.NewInvalidRequest(issues)}
}

var (
	errNotGateway  = refuse(http.StatusUnauthorized, "NOT_A_GATEWAY", "Only gateways may call this address; call the gateway's.")
	errNoRoute     = refuse(http.StatusNotFound, wire.NotFound, "There is nothing at this path.")
	errMethod      = refuse(http.StatusMethodNotAllowed, wire.MethodNotAllowed, "The path takes another method; see Allow.")
	errCrossOrigin = refuse(http.StatusForbidden, "CROSS_ORIGIN_REQUEST", "The request came from another site; open this one and try again.")
	errTooLarge    = refuse(http.StatusRequestEntityTooLarge, wire.PayloadTooLarge, "The body may have at most 16 KiB.")
	errMediaType   = refuse(http.StatusUnsupportedMediaType, wire.UnsupportedMediaType, "Send the body as application/json.")
	errSignedOut   = refuse(http.StatusUnauthorized, "UNAUTHORIZED", "Sign in first.")
	errCredentials = refuse(http.StatusUnauthorized, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password.")
	errSignUpShut  = refuse(http.StatusForbidden, "SIGN_UP_CLOSED", "Sign-up is closed; ask the operator for an account.")
	errUnavailable = refuse(http.StatusServiceUnavailable, wire.ServiceUnavailable, "The database is not available; try again in a second.")
)

// known is the table of what the packages below may return and what a client is told of it.
var known = []struct {
	err     error
	refusal *refusal
}{
	{postgres.ErrKeyReused, refuse(http.StatusUnprocessableEntity, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key came with another request before; use a new one.")},
	{transfer.ErrTransition, refuse(http.StatusConflict, "STATUS_CONFLICT", "The intent's status does not allow this; read it again.")},
	{postgres.ErrTransferNotFound, refuse(http.StatusNotFound, wire.NotFound, "The account has no such transfer.")},
	{postgres.ErrCursorExpired, refuse(http.StatusGone, wire.CursorExpired, "The cursor is too old; start again without one.")},
	{account.ErrEmailTaken, refuse(http.StatusUnprocessableEntity, "USER_ALREADY_EXISTS", "An account with this e-mail address exists; sign in or use another.")},
	{account.ErrTooMany, refuse(http.StatusConflict, "TOO_MANY_API_KEYS", "The account has as many keys as it may; delete one first.")},
	{account.ErrNotFound, refuse(http.StatusNotFound, wire.NotFound, "The account has no such key.")},
}

// failure is what a route tells of an error that nobody foresaw. The zero value is INTERNAL_ERROR.
type failure struct {
	code    wire.Code
	message string
}

// describe chooses status and body for an error. The cause of a 5xx is for the log and never in the body.
func describe(err error, unforeseen failure) *refusal {
	var refused *refusal
	var rejected *transfer.Rejection
	var broken *account.InvalidError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &rejected):
		return refuse(http.StatusUnprocessableEntity, rejected.Code, rejected.Message)
	case errors.As(err, &broken):
		return invalid(wire.Issue{Path: "/" + broken.Field, Message: broken.Message})
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.refusal
		}
	}
	if postgres.Unavailable(err) || errors.Is(err, context.Canceled) {
		return errUnavailable
	}
	if unforeseen.code == "" {
		unforeseen = failure{code: wire.InternalError, message: "Something went wrong here; try again later."}
	}
	return refuse(http.StatusInternalServerError, unforeseen.code, unforeseen.message)
}
