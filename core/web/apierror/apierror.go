// Package apierror maps the errors of core's packages to what clients of the API and users of the console see. It has the shared
// table of statuses, codes and texts; errors that only the API or only the console returns are mapped there.
package apierror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/postgres"
	"intents.internal/core/quotes"
	"intents.internal/core/rpc"
	"intents.internal/core/screening"
	"intents.internal/core/transfer"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/wire"
)

// Error is what clients see of an error.
type Error struct {
	Status int
	// Code and Message are for the API.
	Code    wire.Code
	Message string
	// Details are written as JSON beside code and message; nil for none.
	Details any
	// RetryAfter is the least time until a retry, zero if none helps.
	RetryAfter time.Duration
	// Repeated is true if the same write may have caused the error when it was sent before, as it uses a token or removes a member: a client
	// whose first try has an unknown outcome takes the error for the proof that it was carried out. 404, 409 and 410 always count as such.
	Repeated bool
	// Page is for the console; its zero value means the API's message.
	Page Page
}

// Page is the console's form of an Error.
type Page struct {
	// Title is the heading of an error page.
	Title string
	Text  string
	// Field is the form's invalid field, empty for the whole form.
	Field string
	// Correctable is true if the form is shown again, with Text beside Field.
	Correctable bool
}

// Unavailable is for a database that does not answer.
var Unavailable = Error{
	Status: http.StatusServiceUnavailable, Code: wire.ServiceUnavailable, RetryAfter: time.Second,
	Message: "The database is not available; try again in a second.",
	Page:    Page{Title: "Not available", Text: "The database does not answer at this moment. Nothing is lost; try again in a few seconds."},
}

// outcomeUnknown is for a write whose result did not arrive from the database. Only a repeatable one has a
// RetryAfter, because a client that obeys it would carry out the others twice.
func outcomeUnknown(repeatable bool) Error {
	f := Error{
		Status: http.StatusServiceUnavailable, Code: wire.OutcomeUnknown,
		Message: "The database did not confirm the write, which may have been carried out. Look for it before you repeat it, a transfer in the list by its reference; " +
			"repeat a write with the same Idempotency-Key only.",
		Page: Page{Title: "Not confirmed", Text: "The database did not confirm this, so it may have been done or not. Look at the list that it would be in before you send it again."},
	}
	if repeatable {
		f.RetryAfter = time.Second
		f.Message = "The database did not confirm the write, which may have been carried out. Repeat it with the same Idempotency-Key, which carries it out at most once."
		f.Page.Text = "The database did not confirm this, so it may have been done or not. Reload this page to send the same form again: whatever became of it, it is done once."
	}
	return f
}

// Of returns what clients see of err; ok is false for an error that they must not see.
func Of(err error) (public Error, ok bool) {
	if unknown, ok := errors.AsType[*postgres.OutcomeUnknownError](err); ok {
		return outcomeUnknown(unknown.Repeatable), true
	}
	if noAnswer, ok := errors.AsType[*rpc.NoAnswerError](err); ok {
		return Error{
			Status: http.StatusServiceUnavailable, Code: wire.ServiceUnavailable, RetryAfter: time.Second,
			Message: fmt.Sprintf("No node of chain %s answers; try again in a second.", noAnswer.Chain),
			Page:    Page{Title: "Not available", Text: "No node of the chain answers at this moment. Try again in a few seconds."},
		}, true
	}
	if public, ok := ofQuotes(err); ok {
		return public, true
	}
	if refused, ok := errors.AsType[*screening.NotAllowedError](err); ok {
		return ofScreening(refused), true
	}
	for _, entry := range errorMap {
		if errors.Is(err, entry.err) {
			public = entry.public
			if conflict, ok := errors.AsType[*intents.StatusError](err); ok {
				public.Details = wire.StatusDetails{Status: string(conflict.Status)}
			}
			return public, true
		}
	}
	if postgres.Unavailable(err) || errors.Is(err, context.Canceled) {
		return Unavailable, true
	}
	return Error{}, false
}

// correctable returns the page of an error in a form's field, or in the whole form if field is empty.
func correctable(field, text string) Page { return Page{Field: field, Text: text, Correctable: true} }

// userOperationHint follows the text of an error about a reported hash.
const userOperationHint = " The hash of a user operation is no transaction hash: report the transaction that its bundler sent."

// mapping is an error with what clients see of it.
type mapping struct {
	err    error
	public Error
}

var errorMap = slices.Concat(commonErrors, externalErrors, passkeyErrors)

var commonErrors = []mapping{
	{postgres.ErrTooManyWaiting, Error{
		Status: http.StatusTooManyRequests, Code: wire.RateLimited, RetryAfter: time.Second, Details: wire.RateLimitDetails{TryAgainIn: 1000},
		Message: "Too many changes of this account wait for each other. Send fewer at once, and try again in a second.",
		Page:    correctable("", "Too many changes of this account wait for each other. Try again in a second."),
	}},
	{postgres.ErrKeyReused, Error{
		Status: http.StatusUnprocessableEntity, Code: "IDEMPOTENCY_KEY_REUSED", Message: "This Idempotency-Key came with another request before; use a new one.",
		Page: correctable("", "This form was sent already, with other values. What it recorded then is in the list of transfers."),
	}},
	{intents.ErrExecuted, Error{
		Status: http.StatusConflict, Code: "STATUS_CONFLICT", Message: "Another transaction has carried this intent; read it again." + userOperationHint,
		Page: correctable("hash", "Another transaction has carried this intent."+userOperationHint),
	}},
	{intents.ErrTooManyAttempts, Error{
		Status: http.StatusConflict, Code: "STATUS_CONFLICT",
		Message: "As many transactions as an intent can have were reported for this one; read it again." + userOperationHint,
		Page:    correctable("hash", "As many transactions as an intent can have were reported for this one."+userOperationHint),
	}},
	{transfer.ErrSimulated, Error{
		Status: http.StatusConflict, Code: "STATUS_CONFLICT",
		Message: "The intent was simulated, so it is never sent; create another one.",
		Page:    Page{Title: "Simulated", Text: "The transfer was simulated, so it is never sent. Make another one."},
	}},
	{transfer.ErrSent, Error{
		Status: http.StatusConflict, Code: "STATUS_CONFLICT",
		Message: "A transaction or a signature of this intent is known, so its chain decides its status; create another one to simulate.",
		Page:    correctable("", "A transaction or a signature of this transfer is known, so its chain decides. Make another one to simulate."),
	}},
	{transfer.ErrNotTest, Error{
		Status: http.StatusUnprocessableEntity, Code: "SIMULATION_NOT_SUPPORTED",
		Message: "Only intents of the test environment are simulated; create one with a test key.",
		Page:    correctable("", "Only transfers of the test environment are simulated. Make one there."),
	}},
	{transfer.ErrNotSendable, Error{
		Status: http.StatusConflict, Code: "STATUS_CONFLICT",
		Message: "The intent's status, its deadline or its deployment does not allow this; see details.status and read it again.",
		Page:    Page{Title: "Nothing to send", Text: "The intent is no longer paid for: its status, its deadline or its deployment does not allow it."},
	}},
	{transfer.ErrQuoteEnded, Error{
		Status: http.StatusConflict, Code: "QUOTE_EXPIRED",
		Message: "The quote of this intent has expired, so its transaction is not to be sent. Get a new quote with POST /v2/quotes, and make a new intent of it.",
		Page:    Page{Title: "Expired", Text: "The quote of this intent has expired, so it is not to be paid for. Get a new quote, and make a new intent of it."},
	}},
	{intents.ErrSignature, Error{
		Status: http.StatusUnprocessableEntity, Code: "SIGNATURE_INVALID",
		Message: "The source account has not made this signature of the intent's typed data. Sign signing.typedData as it is, with eth_signTypedData_v4; " +
			"an account with code must accept it by ERC-1271, and its own key does not count.",
		Page: correctable("signature", "The source account has not made this signature. Sign again, with the account of the transfer."),
	}},
	{intents.ErrAccountNotDeployed, Error{
		Status: http.StatusUnprocessableEntity, Code: "ACCOUNT_NOT_DEPLOYED",
		Message: "The signature is good, and the account has no code yet, so no contract accepts it. Deploy the account, then send the inner signature of this one (ERC-6492).",
		Page:    correctable("signature", "The account has no code yet. Deploy it, then sign again."),
	}},
	{intents.ErrNotSigned, Error{
		Status: http.StatusConflict, Code: "NOT_SIGNED",
		Message: "The intent has no signature to send. Its user signs signing.typedData; send the signature to POST /v2/transfers/{id}/signature.",
		Page:    Page{Title: "Not signed", Text: "The transfer has no signature yet, so there is nothing to send."},
	}},
	{transfer.ErrTransition, Error{Status: http.StatusConflict, Code: "STATUS_CONFLICT", Message: "The intent's status does not allow this; see details.status and read it again."}},
	{transfer.ErrNotRefundable, Error{
		Status: http.StatusConflict, Code: "NOT_REFUNDABLE",
		Message: "There is no order to refund: it must be open, expired and neither filled nor refunded. See refundable in the intent's record.",
		Page:    Page{Title: "Nothing to refund", Text: "There is no order to refund: it must be open, expired and neither filled nor refunded."},
	}},
	{rpc.ErrNoProvider, Error{
		Status: http.StatusUnprocessableEntity, Code: "CHAIN_NOT_WATCHED",
		Message: "The operator has configured no node for this chain, so nothing can be asked there; GET /v2/chains says which chains are watched.",
		Page:    Page{Title: "Not followed", Text: "This service has no node of this chain to ask, so nothing can be checked there."},
	}},
	{intents.ErrTransferNotFound, Error{
		Status: http.StatusNotFound, Code: wire.NotFound, Message: "The account has no such transfer.",
		Page: Page{Title: "No such transfer", Text: "Your account has no transfer with this id."},
	}},
	{intents.ErrBatchNotFound, Error{
		Status: http.StatusNotFound, Code: "BATCH_NOT_FOUND", Message: "The account has no such batch in the environment of this key.",
		Page: Page{Title: "No such batch", Text: "Your account has no batch with this id."},
	}},
	{intents.ErrBatchNotUniform, Error{
		Status: http.StatusUnprocessableEntity, Code: "BATCH_NOT_UNIFORM",
		Message: "The transfers of this batch have several source accounts, and one transaction pays from one: name those that it has paid for in transfers.",
	}},
	{quotes.ErrNotConfigured, Error{
		Status: http.StatusUnprocessableEntity, Code: "QUOTES_NOT_CONFIGURED",
		Message: "The operator has configured no provider of quotes in this environment. Choose both amounts, and make the transfer without a quote.",
		Page:    correctable("", "This service has no provider of quotes for these chains. Give both amounts yourself."),
	}},
	{quotes.ErrRouteUnsupported, Error{
		Status: http.StatusUnprocessableEntity, Code: transfer.RouteUnsupported,
		Message: "None of the providers asked serves a deployment that executes this swap or bridge. Choose both amounts, and make the transfer without a quote.",
		Page:    correctable("", "No provider of quotes serves this swap or bridge. Give both amounts yourself."),
	}},
	{quotes.ErrMismatch, Error{
		Status: http.StatusUnprocessableEntity, Code: "QUOTE_MISMATCH",
		Message: "The request differs from its quote. Send quoteId without source, destination and deadline, which the quote has, or ask for a new quote.",
		Page:    correctable("", "The form differs from its quote. Ask for a new quote."),
	}},
	{quotes.ErrNotFound, Error{
		Status: http.StatusNotFound, Code: "QUOTE_NOT_FOUND",
		Message: "The account has no such quote in the environment of this key. Unused quotes are kept for a day after they expire; ask for a new one.",
		Page:    Page{Title: "No such quote", Text: "Your account has no such quote. Unused quotes are kept for a day after they expire; ask for a new one."},
	}},
	{quotes.ErrExpired, Error{
		Status: http.StatusGone, Code: "QUOTE_EXPIRED", Message: "The quote has expired, and nothing was recorded. Ask for a new one.",
		Page: Page{Title: "Expired", Text: "The quote has expired, and nothing was recorded. Ask for a new one."},
	}},
	{feed.ErrCursorExpired, Error{
		Status: http.StatusGone, Code: wire.CursorExpired,
		Message: "Events after the cursor are no longer kept; start again without one and compare with the list of transfers.",
	}},
	{feed.ErrEventNotFound, Error{
		Status: http.StatusNotFound, Code: "EVENT_NOT_FOUND",
		Message: "The feed of this key's environment has no such event. Events are kept for a while, and webhook.test is not in the feed.",
	}},
	{feed.ErrMissed, Error{Status: http.StatusGone, Code: wire.CursorExpired, Message: "The position is too old; start again without one."}},
	{feed.ErrDraining, Error{
		Status: http.StatusServiceUnavailable, Code: wire.ServiceUnavailable, Message: "This core is shutting down; ask another.", RetryAfter: time.Second,
	}},
	{postgres.ErrCursorExpired, Error{Status: http.StatusGone, Code: wire.CursorExpired, Message: "The cursor is too old; start again without one."}},
	{webhooks.ErrNotFound, Error{
		Status: http.StatusNotFound, Code: wire.NotFound, Message: "The account has no such webhook in the environment of this key.",
		Page: Page{Title: "No such webhook", Text: "Your account has no webhook with this id. It may have been deleted."},
	}},
	{webhooks.ErrDeliveryNotFound, Error{
		Status: http.StatusNotFound, Code: wire.NotFound, Message: "The webhook has no delivery of such an event.",
		Page: Page{Title: "No such delivery", Text: "The webhook has no delivery of this event. Deliveries are kept for 30 days."},
	}},
	{webhooks.ErrTooMany, Error{
		Status: http.StatusConflict, Code: "TOO_MANY_WEBHOOKS", Message: "The account has as many webhooks as it may; delete one first.",
		Page: correctable("", fmt.Sprintf("The account has %d webhooks, and more are not possible. Delete one that you no longer use.", webhooks.MaxEndpoints)),
	}},
	{webhooks.ErrDisabled, Error{
		Status: http.StatusConflict, Code: "WEBHOOK_DISABLED", Message: "The webhook is disabled; enable it first.",
		Page: correctable("", "The webhook is disabled. Enable it first."),
	}},
	{webhooks.ErrTooManyReplays, Error{
		Status: http.StatusTooManyRequests, Code: "TOO_MANY_REPLAYS", RetryAfter: webhooks.ReplayInterval,
		Message: "The account has replayed as often as it may for now; read the feed, or wait as long as Retry-After says.",
		Page: correctable("", fmt.Sprintf("The account has replayed as often as it may for now. Another replay is possible in %.0f minutes at the latest.",
			webhooks.ReplayInterval.Minutes())),
	}},
	{webhooks.ErrTooManyCreations, Error{
		Status: http.StatusTooManyRequests, Code: wire.RateLimited, RetryAfter: webhooks.CreationInterval,
		Message: "The account has created as many webhooks as it may for now. Wait as long as Retry-After says, or change one that exists.",
		Details: wire.RateLimitDetails{TryAgainIn: webhooks.CreationInterval.Milliseconds()},
		Page:    correctable("", "The account has created as many webhooks as it may for now. Another one is possible in a minute; or change one that exists."),
	}},
	{webhooks.ErrURLNotAllowed, Error{
		Status: http.StatusUnprocessableEntity, Code: "URL_NOT_ALLOWED", Message: "The URL must lead to a public address, at port 80 or 443.",
		Page: correctable("url", "The URL must lead to a public address, at port 80 or 443."),
	}},
	{webhooks.ErrNotConfigured, Error{
		Status: http.StatusServiceUnavailable, Code: "WEBHOOKS_NOT_CONFIGURED", Message: "The operator has configured no key for the secrets of webhooks.",
		Page: Page{Title: "Not available", Text: "The operator of this service has not set webhooks up."},
	}},
	{account.ErrEmailTaken, Error{
		Status: http.StatusUnprocessableEntity, Repeated: true, Code: "USER_ALREADY_EXISTS", Message: "An account with this e-mail address exists; sign in or use another.",
		Page: correctable("email", "An account with this e-mail address exists. Sign in, or use another address."),
	}},
	{account.ErrIdentityTaken, Error{
		Status: http.StatusConflict, Code: "SOCIAL_ACCOUNT_ALREADY_LINKED", Message: "Another account signs in this way; unlink it there first.",
	}},
	{account.ErrTooManyIdentities, Error{
		Status: http.StatusConflict, Code: "TOO_MANY_ACCOUNTS", Message: fmt.Sprintf("The account has %d ways to sign in besides the password; unlink one first.", account.MaxIdentities),
	}},
	{account.ErrIdentityNotFound, Error{
		Status: http.StatusBadRequest, Repeated: true, Code: "ACCOUNT_NOT_FOUND", Message: "The account is not signed in to this way; see /auth/list-accounts.",
		Page: Page{Title: "Not there", Text: "Your account is not signed in to this way. It may have been unlinked."},
	}},
	{account.ErrLastWayIn, Error{
		Status: http.StatusBadRequest, Code: "FAILED_TO_UNLINK_LAST_ACCOUNT", Message: "Nobody could sign in to the account any more; link another way or set a password first.",
		Page: correctable("", "This is the only way to sign in to your account. Link another one first."),
	}},
	{account.ErrTooMany, Error{
		Status: http.StatusConflict, Code: "TOO_MANY_API_KEYS", Message: "The account has as many keys as it may; delete one first.",
		Page: correctable("", fmt.Sprintf("The account has %d keys, and more are not possible. Delete one that you no longer use.", account.MaxKeys)),
	}},
	{identity.ErrSignedOut, Error{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED", Message: "Sign in first."}},
	{identity.ErrCredentials, Error{
		Status: http.StatusUnauthorized, Code: "INVALID_EMAIL_OR_PASSWORD", Message: "Invalid email or password.",
		Page: correctable("", "The e-mail address or the password is wrong. If you have just signed up, open the link in your mail first."),
	}},
	{identity.ErrPassword, Error{
		Status: http.StatusBadRequest, Code: "INVALID_PASSWORD", Message: "Invalid password.",
		Page: correctable("password", "The password is wrong."),
	}},
	{identity.ErrNoPassword, Error{
		Status: http.StatusBadRequest, Code: "CREDENTIAL_ACCOUNT_NOT_FOUND", Message: "The account has no password; it signs in another way.",
		Page: correctable("", "Your account has no password, as you sign in another way."),
	}},
	{identity.ErrResetToken, Error{
		Status: http.StatusBadRequest, Repeated: true, Code: "INVALID_TOKEN", Message: "The token was used, has expired or is not complete; ask for another.",
		Page: correctable("", "The link was used, has expired or is not complete. Ask for another."),
	}},
	{identity.ErrMailOff, Error{
		Status: http.StatusBadRequest, Code: "RESET_PASSWORD_DISABLED", Message: "The service sends no mail; ask its operator for a link to a new password.",
		Page: correctable("", "This service sends no mail. Ask its operator for a link to a new password."),
	}},
	{identity.ErrVerificationOff, Error{
		Status: http.StatusBadRequest, Code: "VERIFICATION_EMAIL_NOT_ENABLED", Message: "The service sends no mail; ask its operator to verify the address.",
		Page: correctable("", "This service sends no mail. Ask its operator to verify your address."),
	}},
	{identity.ErrEmailVerified, Error{
		Status: http.StatusBadRequest, Repeated: true, Code: "EMAIL_ALREADY_VERIFIED", Message: "The address of the account is verified already.",
		Page: correctable("", "Your address is verified already."),
	}},
	{identity.ErrEmailNotVerified, Error{
		Status: http.StatusForbidden, Code: "EMAIL_NOT_VERIFIED", Message: "Verify your own e-mail address first; invitations are mailed in its name.",
		Page: correctable("", "Verify your own e-mail address first, on the page of your account."),
	}},
	{identity.ErrEmailMismatch, Error{
		Status: http.StatusBadRequest, Code: "EMAIL_MISMATCH", Message: "The address is not that of the account that is signed in; sign out, or name its own.",
	}},
	{identity.ErrLink, Error{
		Status: http.StatusUnauthorized, Repeated: true, Code: "INVALID_TOKEN", Message: "The token was used, has expired or is not complete; ask for another.",
		Page: Page{Title: "The link does not work", Text: "The link was used, has expired or is not complete. Sign in, and ask for another on the page of your account."},
	}},
	{identity.ErrLinkSignedOut, Error{
		Status: http.StatusUnauthorized, Code: "UNAUTHORIZED", Message: "Sign in to the account of the link first, then open it again.",
		Page: correctable("", "Sign in to the account first, in this browser. Then open the link again."),
	}},
	{identity.ErrSignUpClosed, Error{
		Status: http.StatusForbidden, Code: "SIGN_UP_CLOSED", Message: "Sign-up is closed; ask the operator for an account.",
		Page: correctable("", "Sign-up is closed. Ask the operator of this service for an account."),
	}},
	{identity.ErrRole, Error{
		Status: http.StatusForbidden, Code: "ROLE_NOT_ALLOWED", Message: "Your role in this account does not allow that; ask one of its owners.",
		Page: Page{Title: "Not with your role", Text: "Your role in this account does not allow that. Ask one of its owners, or switch to another account."},
	}},
	{account.ErrNotShared, Error{
		Status: http.StatusBadRequest, Code: "ACCOUNT_NOT_SHARED", Message: "Somebody signs in to this account, so that it keeps its name, and that person alone can delete it, with /auth/delete-user.",
		Page: Page{Title: "Not a shared account", Text: "Somebody signs in to this account, so that it keeps its name, and that person alone can delete it."},
	}},
	{account.ErrNotMember, Error{
		Status: http.StatusForbidden, Repeated: true, Code: "USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION", Message: "You are not a member of such an account; list those that you are in.",
		Page: Page{Title: "Not a member", Text: "You are not a member of such an account, or no longer."},
	}},
	{account.ErrNoSuchMember, Error{
		Status: http.StatusBadRequest, Repeated: true, Code: "MEMBER_NOT_FOUND", Message: "The account has no such member; list its members.",
		Page: Page{Title: "No such member", Text: "The account has no such member, or no longer."},
	}},
	{account.ErrAlreadyMember, Error{
		Status: http.StatusBadRequest, Repeated: true, Code: "USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION", Message: "That person is a member of the account already.",
		Page: correctable("email", "That person is a member of the account already."),
	}},
	{account.ErrAlreadyInvited, Error{
		Status: http.StatusBadRequest, Repeated: true, Code: "USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION", Message: "The address is invited already; set resend to invite it again, or cancel that invitation.",
	}},
	{account.ErrNoInvitation, Error{
		Status: http.StatusBadRequest, Repeated: true, Code: "INVITATION_NOT_FOUND", Message: "The invitation was answered or canceled, has expired, or its link is not complete; ask for another.",
		Page: Page{Title: "No such invitation", Text: "The invitation was answered or canceled, has expired, or the link is not complete. If you have more than one mail of it, open the newest. Or ask for another."},
	}},
	{account.ErrNotInvited, Error{
		Status: http.StatusForbidden, Code: "YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION", Message: "The invitation is for another e-mail address; sign in with that one.",
		Page: Page{Title: "For somebody else", Text: "The invitation is for another e-mail address than that of your account. Sign out, and sign in or sign up with that address."},
	}},
	{account.ErrLastOwner, Error{
		Status: http.StatusBadRequest, Code: "YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER", Message: "A shared account needs an owner; make another member one first, or delete the shared account.",
		Page: correctable("", "A shared account needs an owner. Make another member one first, or delete the shared account."),
	}},
	{account.ErrHolder, Error{
		Status: http.StatusForbidden, Code: "YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_MEMBER", Message: "The account is this member's own, who stays its owner.",
		Page: correctable("", "The account is this member's own, who stays its owner."),
	}},
	{account.ErrTooManyMembers, Error{
		Status: http.StatusForbidden, Code: "ORGANIZATION_MEMBERSHIP_LIMIT_REACHED", Message: "The account has as many members and open invitations as it may; remove or cancel one first.",
		Page: correctable("", fmt.Sprintf("The account has %d members and open invitations, and more are not possible. Remove or cancel one.", account.MaxMembers)),
	}},
	{account.ErrTooManyShared, Error{
		Status: http.StatusForbidden, Code: "YOU_HAVE_REACHED_THE_MAXIMUM_NUMBER_OF_ORGANIZATIONS", Message: "You own as many shared accounts as you may; delete one or hand it over first.",
		Page: correctable("", fmt.Sprintf("You own %d shared accounts, and more are not possible. Delete one or hand it over.", account.MaxSharedAccounts)),
	}},
	{identity.ErrPasswordNeeded, Error{
		Status: http.StatusForbidden, Code: "SESSION_NOT_FRESH", Message: "You signed in more than ten minutes ago. Repeat this with your password in the member password.",
		Page: correctable("password", "You signed in more than ten minutes ago. Type your password here to confirm."),
	}},
	{identity.ErrSignInNeeded, Error{
		Status: http.StatusForbidden, Code: "SESSION_NOT_FRESH", Message: "You signed in more than ten minutes ago and have no password. Sign in again the same way, then repeat this within ten minutes.",
		Page: correctable("", "You signed in more than ten minutes ago. You have no password, so sign out, sign in again the same way, and do this within ten minutes."),
	}},
	{identity.ErrBusy, Error{
		Status: http.StatusServiceUnavailable, Code: wire.ServiceUnavailable, Message: "Too many people are signing in; try again in a second.", RetryAfter: time.Second,
		Page: Page{Title: "Busy", Text: "Too many people are signing in at this moment. Try again in a second.", Correctable: true},
	}},
	{identity.ErrAccountDisabled, Error{Status: http.StatusForbidden, Code: "ACCOUNT_DISABLED", Message: "The account is disabled; ask the operator."}},
	{account.ErrKeyExpired, Error{
		Status: http.StatusConflict, Code: "KEY_EXPIRED", Message: "The key has expired; create a new one.",
		Page: correctable("", "The key has expired. Give it another expiry first, or create a new key."),
	}},
	{account.ErrKeyRotated, Error{
		Status: http.StatusConflict, Code: "KEY_ROTATED", Message: "The key was rotated; change the one that took its place.",
		Page: correctable("", "The key was rotated already: another has taken its place, and it works only until its grace ends."),
	}},
	{account.ErrNotFound, Error{
		Status: http.StatusNotFound, Code: wire.NotFound, Message: "The account has no such key.",
		Page: Page{Title: "Not there", Text: "Your account has no such key or session. It may have been deleted, or replaced by rotation."},
	}},
	{account.ErrFormUsed, Error{
		Status: http.StatusConflict, Code: "FORM_USED", Message: "The form was sent already.",
		Page: Page{Title: "Sent already", Text: "This form was sent already. What it made is in the list below, but its key or secret is shown only once. " +
			"If you did not see it, open it in the list and rotate it: that shows a new one in its place.", Correctable: true},
	}},
}
