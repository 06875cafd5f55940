package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"intents.internal/core/access"
	"intents.internal/core/access/siwe"
	"intents.internal/core/account"
	"intents.internal/core/chain"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// apiError is an error with its public status and body, a wire.Error or another JSON shape with a code and a message.
type apiError struct {
	status int
	body   any
	// retryAfter is in seconds, 0 for no such header.
	retryAfter int
}

func (e *apiError) Error() string { return http.StatusText(e.status) }

func newError(status int, code wire.Code, message string) *apiError {
	return &apiError{status: status, body: wire.Error{Code: code, Message: message}}
}

// unavailable is a 503 that a client should retry after a second.
func unavailable(message string) *apiError {
	e := newError(http.StatusServiceUnavailable, wire.ServiceUnavailable, message)
	e.retryAfter = 1
	return e
}

// limited is the 429 for a try over a limit.
func limited(e *access.LimitedError) *apiError {
	return &apiError{
		status: http.StatusTooManyRequests,
		body: wire.Error{
			Code: wire.RateLimited, Message: "Too many tries were made. Wait as long as Retry-After says, then try again.",
			Details: wire.RateLimitDetails{TryAgainIn: max(1, roundUp(e.RetryAfter, time.Millisecond))},
		},
		retryAfter: int(max(1, roundUp(e.RetryAfter, time.Second))),
	}
}

// roundUp returns d in units, rounded up so that a client that waits this long is served.
func roundUp(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

func invalid(issues ...wire.Issue) *apiError {
	return &apiError{status: http.StatusBadRequest, body: wire.NewInvalidRequest(issues)}
}

// chainNotAllowed is the 403 for a chain of the other environment than the key's.
func chainNotAllowed(c chain.Chain, key network.Environment) *apiError {
	return &apiError{status: http.StatusForbidden, body: wire.NewChainNotAllowed(c.ID, c.Environment, key)}
}

var (
	errNotGateway  = newError(http.StatusUnauthorized, "NOT_A_GATEWAY", "Only gateways may call this address; call the gateway's.")
	errNoRoute     = newError(http.StatusNotFound, wire.NotFound, "There is nothing at this path.")
	errMethod      = newError(http.StatusMethodNotAllowed, wire.MethodNotAllowed, "The path takes another method; see Allow.")
	errCrossOrigin = newError(http.StatusForbidden, "CROSS_ORIGIN_REQUEST", "The request came from another site; open this one and try again.")
	errTooLarge    = newError(http.StatusRequestEntityTooLarge, wire.PayloadTooLarge, "The body may have at most 16 KiB.")
	errMediaType   = newError(http.StatusUnsupportedMediaType, wire.UnsupportedMediaType, "Send the body as application/json.")
	errUnavailable = unavailable("The database is not available; try again in a second.")
)

// errorMap maps the errors of the packages below to public errors.
var errorMap = []struct {
	err    error
	public *apiError
}{
	{postgres.ErrKeyReused, newError(http.StatusUnprocessableEntity, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key came with another request before; use a new one.")},
	{transfer.ErrTransition, newError(http.StatusConflict, "STATUS_CONFLICT", "The intent's status does not allow this; read it again.")},
	{postgres.ErrTransferNotFound, newError(http.StatusNotFound, wire.NotFound, "The account has no such transfer.")},
	{postgres.ErrCursorExpired, newError(http.StatusGone, wire.CursorExpired, "The cursor is too old; start again without one.")},
	{account.ErrEmailTaken, newError(http.StatusUnprocessableEntity, "USER_ALREADY_EXISTS", "An account with this e-mail address exists; sign in or use another.")},
	{account.ErrTooMany, newError(http.StatusConflict, "TOO_MANY_API_KEYS", "The account has as many keys as it may; delete one first.")},
	{access.ErrSignedOut, newError(http.StatusUnauthorized, "UNAUTHORIZED", "Sign in first.")},
	{access.ErrCredentials, newError(http.StatusUnauthorized, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password.")},
	{access.ErrPassword, newError(http.StatusBadRequest, "INVALID_PASSWORD", "Invalid password.")},
	{access.ErrSignUpClosed, newError(http.StatusForbidden, "SIGN_UP_CLOSED", "Sign-up is closed; ask the operator for an account.")},
	{access.ErrSessionNotFresh, newError(http.StatusForbidden, "SESSION_NOT_FRESH", "Sign in again, then repeat this within ten minutes.")},
	{access.ErrBusy, unavailable("Too many people are signing in; try again in a second.")},
	{access.ErrAccountDisabled, newError(http.StatusForbidden, "ACCOUNT_DISABLED", "The account is disabled; ask the operator.")},
	{access.ErrWalletSite, newError(http.StatusUnauthorized, "UNAUTHORIZED_SIWE_MESSAGE_MISMATCH", "The message is for another site, address or chain; have the wallet sign one that was made here.")},
	{access.ErrWalletExpired, newError(http.StatusUnauthorized, "UNAUTHORIZED_SIWE_MESSAGE_EXPIRED", "The message has expired or is older than ten minutes; have the wallet sign a new one.")},
	{access.ErrWalletNotYetValid, newError(http.StatusUnauthorized, "UNAUTHORIZED_SIWE_MESSAGE_NOT_YET_VALID", "The message is not valid yet; check the clock of the device that made it.")},
	{access.ErrWalletNonce, newError(http.StatusUnauthorized, "UNAUTHORIZED_INVALID_OR_EXPIRED_NONCE", "The nonce was used before or has expired; ask for a new one.")},
	{siwe.ErrSignature, newError(http.StatusUnauthorized, "UNAUTHORIZED_INVALID_SIWE_SIGNATURE", "The message's address did not sign it. The signature must be the 65 bytes of personal_sign; contract wallets (ERC-1271) are not supported.")},
	{access.ErrOIDCOff, newError(http.StatusNotFound, wire.NotFound, "Sign-in with OpenID Connect is not configured here.")},
	{access.ErrOIDCUnavailable, unavailable("The OpenID Connect provider does not answer; try again in a moment.")},
	{account.ErrKeyExpired, newError(http.StatusConflict, "KEY_EXPIRED", "The key has expired; create a new one.")},
	{account.ErrKeyRotated, newError(http.StatusConflict, "KEY_ROTATED", "The key was rotated; change the one that took its place.")},
	{account.ErrNotFound, newError(http.StatusNotFound, wire.NotFound, "The account has no such key.")},
}

// fallbackError is a route's 500 for an error without a public one. The zero value is INTERNAL_ERROR.
type fallbackError struct {
	code    wire.Code
	message string
}

// toAPIError chooses status and body for an error. The cause of a 5xx goes to the log only.
func toAPIError(err error, fallback fallbackError) *apiError {
	var public *apiError
	var rejection *transfer.Rejection
	var invalidField *account.InvalidError
	var rateLimited *access.LimitedError
	switch {
	case errors.As(err, &public):
		return public
	case errors.As(err, &rejection):
		return newError(http.StatusUnprocessableEntity, rejection.Code, rejection.Message)
	case errors.As(err, &invalidField):
		return invalid(wire.Issue{Path: "/" + invalidField.Field, Message: invalidField.Message})
	case errors.As(err, &rateLimited):
		return limited(rateLimited)
	}
	for _, entry := range errorMap {
		if errors.Is(err, entry.err) {
			return entry.public
		}
	}
	if postgres.Unavailable(err) || errors.Is(err, context.Canceled) {
		return errUnavailable
	}
	if fallback.code == "" {
		fallback = fallbackError{code: wire.InternalError, message: "Something went wrong here; try again later."}
	}
	return newError(http.StatusInternalServerError, fallback.code, fallback.message)
}
