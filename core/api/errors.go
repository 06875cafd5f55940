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

// refusal is an error that is the client's to know: its status and its body. Body is a wire.Error or another JSON shape
// with a code and a message.
type refusal struct {
	status int
	body   any
	// retryAfter is in seconds, 0 for no such header.
	retryAfter int
}

func (r *refusal) Error() string { return http.StatusText(r.status) }

func refuse(status int, code wire.Code, message string) *refusal {
	return &refusal{status: status, body: wire.Error{Code: code, Message: message}}
}

// unavailable is a 503 that is worth a second try.
func unavailable(message string) *refusal {
	r := refuse(http.StatusServiceUnavailable, wire.ServiceUnavailable, message)
	r.retryAfter = 1
	return r
}

// limited is the 429 of a visitor who tried too often.
func limited(e *access.LimitedError) *refusal {
	return &refusal{
		status: http.StatusTooManyRequests,
		body: wire.Error{
			Code: wire.RateLimited, Message: "Too many tries were made. Wait as long as Retry-After says, then try again.",
			Details: wire.RateLimitDetails{TryAgainIn: max(1, roundUp(e.RetryAfter, time.Millisecond))},
		},
		retryAfter: int(max(1, roundUp(e.RetryAfter, time.Second))),
	}
}

// roundUp counts the units of d, so that a client that waits as told gets through.
func roundUp(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

func invalid(issues ...wire.Issue) *refusal {
	return &refusal{status: http.StatusBadRequest, body: wire.NewInvalidRequest(issues)}
}

// chainNotAllowed refuses a chain to a key of the other environment.
func chainNotAllowed(c chain.Chain, key network.Environment) *refusal {
	return &refusal{status: http.StatusForbidden, body: wire.NewChainNotAllowed(c.ID, c.Environment, key)}
}

var (
	errNotGateway  = refuse(http.StatusUnauthorized, "NOT_A_GATEWAY", "Only gateways may call this address; call the gateway's.")
	errNoRoute     = refuse(http.StatusNotFound, wire.NotFound, "There is nothing at this path.")
	errMethod      = refuse(http.StatusMethodNotAllowed, wire.MethodNotAllowed, "The path takes another method; see Allow.")
	errCrossOrigin = refuse(http.StatusForbidden, "CROSS_ORIGIN_REQUEST", "The request came from another site; open this one and try again.")
	errTooLarge    = refuse(http.StatusRequestEntityTooLarge, wire.PayloadTooLarge, "The body may have at most 16 KiB.")
	errMediaType   = refuse(http.StatusUnsupportedMediaType, wire.UnsupportedMediaType, "Send the body as application/json.")
	errUnavailable = unavailable("The database is not available; try again in a second.")
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
	{access.ErrSignedOut, refuse(http.StatusUnauthorized, "UNAUTHORIZED", "Sign in first.")},
	{access.ErrCredentials, refuse(http.StatusUnauthorized, "INVALID_EMAIL_OR_PASSWORD", "Invalid email or password.")},
	{access.ErrPassword, refuse(http.StatusBadRequest, "INVALID_PASSWORD", "Invalid password.")},
	{access.ErrSignUpClosed, refuse(http.StatusForbidden, "SIGN_UP_CLOSED", "Sign-up is closed; ask the operator for an account.")},
	{access.ErrSessionNotFresh, refuse(http.StatusForbidden, "SESSION_NOT_FRESH", "Sign in again, then repeat this within ten minutes.")},
	{access.ErrBusy, unavailable("Too many people are signing in; try again in a second.")},
	{access.ErrAccountDisabled, refuse(http.StatusForbidden, "ACCOUNT_DISABLED", "The account is disabled; ask the operator.")},
	{access.ErrWalletSite, refuse(http.StatusUnauthorized, "UNAUTHORIZED_SIWE_MESSAGE_MISMATCH", "The message is for another site, address or chain; have the wallet sign one that was made here.")},
	{access.ErrWalletExpired, refuse(http.StatusUnauthorized, "UNAUTHORIZED_SIWE_MESSAGE_EXPIRED", "The message has expired or is older than ten minutes; have the wallet sign a new one.")},
	{access.ErrWalletNotYetValid, refuse(http.StatusUnauthorized, "UNAUTHORIZED_SIWE_MESSAGE_NOT_YET_VALID", "The message is not valid yet; check the clock of the device that made it.")},
	{access.ErrWalletNonce, refuse(http.StatusUnauthorized, "UNAUTHORIZED_INVALID_OR_EXPIRED_NONCE", "The nonce was used before or has expired; ask for a new one.")},
	{siwe.ErrSignature, refuse(http.StatusUnauthorized, "UNAUTHORIZED_INVALID_SIWE_SIGNATURE", "The message's address did not sign it. The signature must be the 65 bytes of personal_sign; contract wallets (ERC-1271) are not supported.")},
	{access.ErrOIDCOff, refuse(http.StatusNotFound, wire.NotFound, "Sign-in with OpenID Connect is not configured here.")},
	{access.ErrOIDCUnavailable, unavailable("The OpenID Connect provider does not answer; try again in a moment.")},
	{account.ErrKeyExpired, refuse(http.StatusConflict, "KEY_EXPIRED", "The key has expired; create a new one.")},
	{account.ErrKeyRotated, refuse(http.StatusConflict, "KEY_ROTATED", "The key was rotated; change the one that took its place.")},
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
	var tooOften *access.LimitedError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &rejected):
		return refuse(http.StatusUnprocessableEntity, rejected.Code, rejected.Message)
	case errors.As(err, &broken):
		return invalid(wire.Issue{Path: "/" + broken.Field, Message: broken.Message})
	case errors.As(err, &tooOften):
		return limited(tooOften)
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
