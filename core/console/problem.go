package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"intents.internal/core/access"
	"intents.internal/core/account"
	"intents.internal/core/postgres"
)

// problem is what a page says of an error.
type problem struct {
	status int
	// Field is the form's field that is wrong, empty for the whole.
	Field string
	// Title heads a page that has nothing else to say.
	Title string
	Text  string
	// correctable problems belong into the form they came from.
	correctable bool
	retryAfter  time.Duration
}

func (p problem) Error() string { return p.Text }

// Errors of this package, each with its page.
var (
	errCrossOrigin  = problem{status: http.StatusForbidden, Title: "Not from here", Text: "The request came from another site, so nothing was done. If you meant it, open the console and do it there."}
	errNoPage       = problem{status: http.StatusNotFound, Title: "No such page", Text: "There is nothing at this address."}
	errNotWhole     = problem{status: http.StatusBadRequest, Title: "The form did not arrive whole", Text: "Go back and send it again."}
	errTooLong      = problem{status: http.StatusRequestEntityTooLarge, Title: "Too much was sent", Text: "A form may have at most 64 KiB. Go back and shorten what you typed."}
	errNotAForm     = problem{status: http.StatusUnsupportedMediaType, Title: "Not a form", Text: "What was sent cannot be read as this page's form. Open the page again and send it from there."}
	errUnknownField = problem{status: http.StatusBadRequest, Title: "Not this page's form", Text: "The request has a field that the page does not have, or one twice, so nothing was done. Open the page again and send it from there."}
)

// known is the table of what the packages below may return.
var known = []struct {
	err     error
	problem problem
}{
	{access.ErrCredentials, problem{status: http.StatusUnauthorized, Text: "The e-mail address or the password is wrong.", correctable: true}},
	{access.ErrPassword, problem{status: http.StatusForbidden, Field: "password", Text: "The password is wrong.", correctable: true}},
	{access.ErrSignUpClosed, problem{status: http.StatusForbidden, Text: "Sign-up is closed. Ask the operator of this service for an account.", correctable: true}},
	{access.ErrSessionNotFresh, problem{status: http.StatusForbidden, Text: "You signed in too long ago for this. Sign out, sign in again and repeat it within ten minutes.", correctable: true}},
	{access.ErrBusy, problem{status: http.StatusServiceUnavailable, Title: "Busy", Text: "Too many people are signing in at this moment. Try again in a second.", correctable: true, retryAfter: time.Second}},
	{access.ErrOIDCOff, errNoPage},
	{access.ErrOIDCUnavailable, problem{status: http.StatusServiceUnavailable, Title: "Not available", Text: "The sign-in provider does not answer at this moment. Try again in a few seconds, or sign in another way.", retryAfter: time.Second}},
	{account.ErrEmailTaken, problem{status: http.StatusUnprocessableEntity, Field: "email", Text: "An account with this e-mail address exists. Sign in, or use another address.", correctable: true}},
	{account.ErrFormUsed, problem{status: http.StatusConflict, Title: "Sent already", correctable: true, Text: "This form was sent already, and its key was made then; a key is shown only once. " +
		"If you did not see it, open it in the list below and rotate it: that shows a new one in its place."}},
	{account.ErrTooMany, problem{status: http.StatusConflict, Text: fmt.Sprintf("The account has %d keys, and more are not possible. Delete one that you no longer use.", account.MaxKeys), correctable: true}},
	{account.ErrKeyExpired, problem{status: http.StatusConflict, Text: "The key has expired. Give it another expiry first, or create a new key.", correctable: true}},
	{account.ErrKeyRotated, problem{status: http.StatusConflict, Text: "The key was rotated already: another has taken its place, and it works only until its grace ends.", correctable: true}},
	{account.ErrNotFound, problem{status: http.StatusNotFound, Title: "Not there", Text: "Your account has no such key or session. It may have been deleted, or replaced by rotation."}},
	{postgres.ErrTransferNotFound, problem{status: http.StatusNotFound, Title: "No such transfer", Text: "Your account has no transfer with this id."}},
}

// describe chooses status and words for an error. The cause of a 5xx is for the log and never on the page.
func describe(err error) problem {
	var ours problem
	var invalid *account.InvalidError
	var limited *access.LimitedError
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &invalid):
		return problem{
			status: http.StatusBadRequest, Field: invalid.Field, Text: label(invalid.Field) + " " + invalid.Message + ".", correctable: true,
		}
	case errors.As(err, &limited):
		return problem{
			status: http.StatusTooManyRequests, Title: "Too many attempts", correctable: true, retryAfter: limited.RetryAfter,
			Text: fmt.Sprintf("There were too many attempts. Try again in %s.", wait(limited.RetryAfter)),
		}
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.problem
		}
	}
	if postgres.Unavailable(err) || errors.Is(err, context.Canceled) {
		return problem{
			status: http.StatusServiceUnavailable, Title: "Not available", retryAfter: time.Second,
			Text: "The database does not answer at this moment. Nothing is lost; try again in a few seconds.",
		}
	}
	return problem{
		status: http.StatusInternalServerError, Title: "Something went wrong here",
		Text: "That is our fault and has been noted. Try again later.",
	}
}

// wait says how long something takes, rounded up.
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

// label is what people see of a field's name.
func label(field string) string {
	switch field {
	case "email":
		return "E-mail address"
	case "expiresIn":
		return "Expiry"
	case "gracePeriod":
		return "The old key's grace"
	case "":
		return "The form"
	default:
		return string(field[0]-'a'+'A') + field[1:]
	}
}

// refuse answers with the page of an error, or leads to the sign-in page where that is all that is missing.
func (c *console) refuse(w http.ResponseWriter, r *http.Request, in who, err error) error {
	if errors.Is(err, access.ErrSignedOut) {
		redirect(w, r, c.signInFor(r))
		return nil
	}
	p := describe(err)
	left := errors.Is(r.Context().Err(), context.Canceled) // who has left needs nobody's help
	if p.status >= http.StatusInternalServerError && !left {
		c.Log.LogAttrs(r.Context(), slog.LevelError, "console page failed",
			slog.String("route", r.Pattern), slog.Any("error", err))
	}
	f := &form{Problems: []problem{p}}
	return c.render(w, r, in, "problem", view{Title: p.Title, Form: f, Body: p})
}

// signInFor is the sign-in page that leads back to where the request was made.
func (c *console) signInFor(r *http.Request) string {
	next := r.URL.RequestURI()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		next = above(r.URL.Path)
	}
	query := url.Values{"next": {next}}
	if c.Cookie.Token(r) != "" {
		query.Set("done", "ended")
	}
	return "/console/sign-in?" + query.Encode()
}
