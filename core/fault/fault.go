// Package fault maps the errors of core's packages to what clients of the API and users of the console see. It holds the one table of
// statuses, codes and texts; errors that only one of the two can return stay there.
package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"intents.internal/core/access"
	"intents.internal/core/access/siwe"
	"intents.internal/core/account"
	"intents.internal/core/feed"
	"intents.internal/core/onchain"
	"intents.internal/core/postgres"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/core/webhook"
	"intents.internal/pkg/wire"
)

// Fault is the public form of an error.
type Fault struct {
	Status int
	// Code and Message are the API's.
	Code    wire.Code
	Message string
	// RetryAfter is zero for a fault that a retry does not help.
	RetryAfter time.Duration
	// Page is the console's; the zero value has the API's message.
	Page Page
}

// Page is the form of a fault in the console.
type Page struct {
	// Title is the heading of an error page.
	Title string
	Text  string
	// Field is the form's invalid field, empty for the whole form.
	Field string
	// Correctable faults are shown in their form.
	Correctable bool
}

// Unavailable is the fault of a database that does not answer.
var Unavailable = Fault{
	Status: http.StatusServiceUnavailable, Code: wire.ServiceUnavailable, RetryAfter: time.Second,
	Message: "The database is not available; try again in a second.",
	Page:    Page{Title: "Not available", Text: "The database does not answer at this moment. Nothing is lost; try again in a few seconds."},
}

// Of returns the fault of an error; ok is false for one that has none.
func Of(err error) (f Fault, ok bool) {
	if noAnswer, ok := errors.AsType[*onchain.NoAnswerError](err); ok {
		return Fault{
			Status: http.StatusServiceUnavailable, Code: wire.ServiceUnavailable, RetryAfter: time.Second,
			Message: fmt.Sprintf("No node of chain %s answers; try again in a second.", noAnswer.Chain),
			Page:    Page{Title: "Not available", Text: "No node of the chain answers at this moment. Try again in a few seconds."},
		}, true
	}
	for _, entry := range table {
		if errors.Is(err, entry.err) {
			return entry.fault, true
		}
	}
	if postgres.Unavailable(err) || errors.Is(err, context.Canceled) {
		return Unavailable, true
	}
	return Fault{}, false
}

// correctable is a fault of a form's field, or of the whole form if field is empty.
func correctable(field, text string) Page { return Page{Field: field, Text: text, Correctable: true} }

var table = []struct {
	err   error
	fault Fault
}{
	{postgres.ErrKeyReused, Fault{
		Status: http.StatusUnprocessableEntity, Code: "IDEMPOTENCY_KEY_REUSED", Message: "This Idempotency-Key came with another request before; use a new one.",
		Page: correctable("", "This form was sent already, with other values. What it recorded then is in the list of transfers."),
	}},
	{transfer.ErrTransition, Fault{Status: http.StatusConflict, Code: "STATUS_CONFLICT", Message: "The intent's status does not allow this; read it again."}},
	{transfer.ErrNotRefundable, Fault{
		Status: http.StatusConflict, Code: "NOT_REFUNDABLE",
		Message: "There is no order to refund: it must be open, past its deadline and neither filled nor refunded. See refundable in the intent's record.",
		Page:    Page{Title: "Nothing to refund", Text: "There is no order to refund: it must be open, past its deadline and neither filled nor refunded."},
	}},
	{rpc.ErrNoProvider, Fault{
		Status: http.StatusServiceUnavailable, Code: "CHAIN_NOT_WATCHED",
		Message: "The operator has configured no node for this chain, so nothing can be asked there.",
		Page:    Page{Title: "Not followed", Text: "The operator of this service follows this chain at no node, so nothing can be asked there."},
	}},
	{postgres.ErrTransferNotFound, Fault{
		Status: http.StatusNotFound, Code: wire.NotFound, Message: "The account has no such transfer.",
		Page: Page{Title: "No such transfer", Text: "Your account has no transfer with this id."},
	}},
	{postgres.ErrFeedCursorExpired, Fault{
		Status: http.StatusGone, Code: wire.CursorExpired,
		Message: "Events after the cursor are no longer kept; start again without one and compare with the list of transfers.",
	}},
	{feed.ErrMissed, Fault{Status: http.StatusGone, Code: wire.CursorExpired, Message: "The position is too old; start again without one."}},
	{feed.ErrDraining, Fault{
		Status: http.StatusServiceUnavailable, Code: wire.ServiceUnavailable, Message: "This core is shutting down; ask another.", RetryAfter: time.Second,
	}},
	{postgres.ErrCursorExpired, Fault{Status: http.StatusGone, Code: wire.CursorExpired, Message: "The cursor is too old; start again without one."}},
	{webhook.ErrNotFound, Fault{
		Status: http.StatusNotFound, Code: wire.NotFound, Message: "The account has no such webhook in the environment of this key.",
		Page: Page{Title: "No such webhook", Text: "Your account has no webhook with this id. It may have been deleted."},
	}},
	{webhook.ErrDeliveryNotFound, Fault{
		Status: http.StatusNotFound, Code: wire.NotFound, Message: "The webhook has no delivery of such an event.",
		Page: Page{Title: "No such delivery", Text: "The webhook has no delivery of this event. Deliveries are kept for 30 days."},
	}},
	{webhook.ErrTooMany, Fault{
		Status: http.StatusConflict, Code: "TOO_MANY_WEBHOOKS", Message: "The account has as many webhooks as it may; delete one first.",
		Page: correctable("", fmt.Sprintf("The account has %d webhooks, and more are not possible. Delete one that you no longer use.", webhook.MaxEndpoints)),
	}},
	{webhook.ErrDisabled, Fault{
		Status: http.StatusConflict, Code: "WEBHOOK_DISABLED", Message: "The webhook is disabled; enable it first.",
		Page: correctable("", "The webhook is disabled. Enable it first."),
	}},
	{webhook.ErrURLNotAllowed, Fault{
		Status: http.StatusUnprocessableEntity, Code: "URL_NOT_ALLOWED", Message: "The URL must lead to a public address, at port 80 or 443.",
		Page: correctable("url", "The URL must lead to a public address, at port 80 or 443."),
	}},
	{webhook.ErrNotConfigured, Fault{
		Status: http.StatusServiceUnavailable, Code: "WEBHOOKS_NOT_CONFIGURED", Message: "The operator has configured no key for the secrets of webhooks.",
		Page: Page{Title: "Not available", Text: "The operator of this service has not set webhooks up."},
	}},
	{account.ErrEmailTaken, Fault{
		Status: http.StatusUnprocessableEntity, Code: "USER_ALREADY_EXISTS", Message: "An account with this e-mail address exists; sign in or use another.",
		Page: correctable("email", "An account with this e-mail address exists. Sign in, or use another address."),
	}},
	{account.ErrTooMany, Fault{
		Status: http.StatusConflict, Code: "TOO_MANY_API_KEYS", Message: "The account has as many keys as it may; delete one first.",
		Page: correctable("", fmt.Sprintf("The account has %d keys, and more are not possible. Delete one that you no longer use.", account.MaxKeys)),
	}},
	{access.ErrSignedOut, Fault{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED", Message: "Sign in first."}},
	{access.ErrCredentials, Fault{
		Status: http.StatusUnauthorized, Code: "INVALID_EMAIL_OR_PASSWORD", Message: "Invalid email or password.",
		Page: correctable("", "The e-mail address or the password is wrong."),
	}},
	{access.ErrPassword, Fault{
		Status: http.StatusBadRequest, Code: "INVALID_PASSWORD", Message: "Invalid password.",
		Page: correctable("password", "The password is wrong."),
	}},
	{access.ErrSignUpClosed, Fault{
		Status: http.StatusForbidden, Code: "SIGN_UP_CLOSED", Message: "Sign-up is closed; ask the operator for an account.",
		Page: correctable("", "Sign-up is closed. Ask the operator of this service for an account."),
	}},
	{access.ErrSessionNotFresh, Fault{
		Status: http.StatusForbidden, Code: "SESSION_NOT_FRESH", Message: "Sign in again, then repeat this within ten minutes.",
		Page: correctable("", "You signed in too long ago for this. Sign out, sign in again and repeat it within ten minutes."),
	}},
	{access.ErrBusy, Fault{
		Status: http.StatusServiceUnavailable, Code: wire.ServiceUnavailable, Message: "Too many people are signing in; try again in a second.", RetryAfter: time.Second,
		Page: Page{Title: "Busy", Text: "Too many people are signing in at this moment. Try again in a second.", Correctable: true},
	}},
	{access.ErrAccountDisabled, Fault{Status: http.StatusForbidden, Code: "ACCOUNT_DISABLED", Message: "The account is disabled; ask the operator."}},
	{access.ErrWalletSite, Fault{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_SIWE_MESSAGE_MISMATCH", Message: "The message is for another site, address or chain; have the wallet sign one that was made here."}},
	{access.ErrWalletExpired, Fault{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_SIWE_MESSAGE_EXPIRED", Message: "The message has expired or is older than ten minutes; have the wallet sign a new one."}},
	{access.ErrWalletNotYetValid, Fault{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_SIWE_MESSAGE_NOT_YET_VALID", Message: "The message is not valid yet; check the clock of the device that made it."}},
	{access.ErrWalletNonce, Fault{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_INVALID_OR_EXPIRED_NONCE", Message: "The nonce was used before or has expired; ask for a new one."}},
	{siwe.ErrSignature, Fault{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_INVALID_SIWE_SIGNATURE", Message: "The message's address did not sign it. The signature must be the 65 bytes of personal_sign; contract wallets (ERC-1271) are not supported."}},
	{access.ErrOIDCOff, Fault{
		Status: http.StatusNotFound, Code: wire.NotFound, Message: "Sign-in with OpenID Connect is not configured here.",
		Page: Page{Title: "No such page", Text: "There is nothing at this address."},
	}},
	{access.ErrOIDCUnavailable, Fault{
		Status: http.StatusServiceUnavailable, Code: wire.ServiceUnavailable, Message: "The OpenID Connect provider does not answer; try again in a moment.", RetryAfter: time.Second,
		Page: Page{Title: "Not available", Text: "The sign-in provider does not answer at this moment. Try again in a few seconds, or sign in another way."},
	}},
	{account.ErrKeyExpired, Fault{
		Status: http.StatusConflict, Code: "KEY_EXPIRED", Message: "The key has expired; create a new one.",
		Page: correctable("", "The key has expired. Give it another expiry first, or create a new key."),
	}},
	{account.ErrKeyRotated, Fault{
		Status: http.StatusConflict, Code: "KEY_ROTATED", Message: "The key was rotated; change the one that took its place.",
		Page: correctable("", "The key was rotated already: another has taken its place, and it works only until its grace ends."),
	}},
	{account.ErrNotFound, Fault{
		Status: http.StatusNotFound, Code: wire.NotFound, Message: "The account has no such key.",
		Page: Page{Title: "Not there", Text: "Your account has no such key or session. It may have been deleted, or replaced by rotation."},
	}},
	{account.ErrFormUsed, Fault{
		Status: http.StatusConflict, Code: "FORM_USED", Message: "The form was sent already.",
		Page: Page{Title: "Sent already", Text: "This form was sent already. What it made is in the list below, but its key or secret is shown only once. " +
			"If you did not see it, open it in the list and rotate it: that shows a new one in its place.", Correctable: true},
	}},
}
