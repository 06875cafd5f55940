package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/web/apierror"
)

// pageError is an error as a page shows it.
type pageError struct {
	status int
	// Field is the form's invalid field, empty for the whole form.
	Field string
	// Title is the heading of an error page.
	Title string
	Text  string
	// correctable errors are shown in their form.
	correctable bool
	retryAfter  time.Duration
	// repeated is that of apierror.Error.
	repeated bool
}

func (e pageError) Error() string { return e.Text }

// The errors of this package.
var (
	errCrossOrigin  = pageError{status: http.StatusForbidden, Title: "Not from here", Text: "The request came from another site, so nothing was done. If you meant it, open the console and do it there."}
	errOtherAccount = pageError{status: http.StatusConflict, Title: "Not this account", Text: "You switched to another account after this page was opened, so nothing was done. Switch back under Accounts, then open the page again."}
	errNoPage       = pageError{status: http.StatusNotFound, Title: "No such page", Text: "There is nothing at this address."}
	errNotWhole     = pageError{status: http.StatusBadRequest, Title: "The form did not arrive whole", Text: "Go back and send it again."}
	errTooLong      = pageError{status: http.StatusRequestEntityTooLarge, Title: "Too much was sent", Text: "A form may have at most 64 KiB. Go back and shorten what you typed."}
	errNotAForm     = pageError{status: http.StatusUnsupportedMediaType, Title: "Not a form", Text: "What was sent cannot be read as this page's form. Open the page again and send it from there."}
	errUnknownField = pageError{status: http.StatusBadRequest, Title: "Not this page's form", Text: "The request has a field that the page does not have, or one twice, so nothing was done. Open the page again and send it from there."}
)

// toPageError chooses status and text for an error. The cause of a 5xx goes to the log only.
func toPageError(err error) pageError {
	var ours pageError
	var invalid *account.InvalidError
	var limited *identity.LimitedError
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &invalid):
		return pageError{
			status: http.StatusBadRequest, Field: invalid.Field, Text: label(invalid.Field) + " " + invalid.Message + ".", correctable: true,
		}
	case errors.As(err, &limited):
		return pageError{
			status: http.StatusTooManyRequests, Title: "Too many attempts", correctable: true, retryAfter: limited.RetryAfter,
			Text: fmt.Sprintf("There were too many attempts. Try again in %s.", wait(limited.RetryAfter)),
		}
	}
	if f, ok := apierror.Of(err); ok {
		return pageError{
			status: f.Status, Field: f.Page.Field, Title: cmp.Or(f.Page.Title, http.StatusText(f.Status)), Text: cmp.Or(f.Page.Text, f.Message),
			correctable: f.Page.Correctable, retryAfter: f.RetryAfter, repeated: f.Repeated,
		}
	}
	return pageError{
		status: http.StatusInternalServerError, Title: "Something went wrong here",
		Text: "That is our fault and has been noted. Try again later.",
	}
}

// wait returns a duration in words, rounded up.
func wait(d time.Duration) string {
	n, unit := seconds(d), "second"
	if n >= 120 {
		n, unit = (n+59)/60, "minute"
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// label returns the name of a field on the page.
func label(field string) string {
	switch field {
	case "email":
		return "E-mail address"
	case "newEmail":
		return "The new address"
	case "expiresIn":
		return "Expiry"
	case "scopes":
		return "The scopes"
	case "networks":
		return "The networks"
	case "origins":
		return "The origins"
	case "gracePeriod":
		return "The grace period"
	case "sourceChain", "destinationChain":
		return "The chain"
	case "sourceAccount":
		return "The account that sends"
	case "destinationAccount":
		return "The account that receives"
	case "sourceToken", "destinationToken":
		return "The token"
	case "sourceAmount":
		return "The amount"
	case "destinationAmount":
		return "The least amount out"
	case "q":
		return "What you look for"
	case "url":
		return "The URL"
	case "types":
		return "The list of events"
	case "newPassword":
		return "The new password"
	case "since":
		return "The time to replay"
	case "":
		return "The form"
	default:
		return string(field[0]-'a'+'A') + field[1:]
	}
}

// renderError answers with the page of an error, or redirects to the sign-in page if there is no session.
func (c *console) renderError(w http.ResponseWriter, r *http.Request, user currentUser, err error) error {
	if errors.Is(err, identity.ErrSignedOut) {
		redirect(w, r, c.signInFor(r))
		return nil
	}
	e := toPageError(err)
	clientClosed := errors.Is(r.Context().Err(), context.Canceled)
	suppressed, due := int64(0), e.status >= http.StatusInternalServerError && !clientClosed
	if due && e.status == http.StatusServiceUnavailable {
		suppressed, due = c.unavailable.Due(err)
	}
	if due {
		c.Log.LogAttrs(r.Context(), slog.LevelError, "console page failed",
			slog.String("route", r.Pattern), slog.Any("error", err), slog.Int64("suppressed", suppressed))
	}
	f := &form{Errors: []pageError{e}}
	return c.render(w, r, user, "error", view{Title: e.Title, Form: f, Body: e})
}

// signInFor returns the URL of the sign-in page that returns to the request's page.
func (c *console) signInFor(r *http.Request) string {
	next := r.URL.RequestURI()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		next = parentPath(r.URL.Path)
	}
	query := url.Values{"next": {next}}
	if c.Cookie.Token(r) != "" {
		query.Set("done", "ended")
	}
	return "/console/sign-in?" + query.Encode()
}
