package console

import (
	"errors"
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres"
)

// showVerifyEmail answers GET /console/verify-email, the target of a mailed verification link. A GET does not use the link up,
// because mail scanners follow links.
func (c *console) showVerifyEmail(w http.ResponseWriter, r *http.Request, _ currentUser) error {
	f, err := readQuery(r, "token", "callbackURL")
	if err != nil {
		return err
	}
	return c.renderVerifyEmail(w, r, f)
}

// followLink answers POST /console/verify-email. A browser that is not signed in to the account sends its password.
func (c *console) followLink(w http.ResponseWriter, r *http.Request, _ currentUser) error {
	f, err := readForm(r, "token", "callbackURL", "password")
	if err != nil {
		return err
	}
	target, err := c.Identity.Callback("callbackURL", f.values["callbackURL"])
	if err != nil { // the service never issues such a link
		return errUnknownField
	}
	var l *postgres.Link
	var signedIn *identity.SignedIn
	if f.ok() {
		l, signedIn, err = c.Identity.FollowLink(
			r.Context(), identity.ClientOf(r, c.Cookie), f.values["token"], f.values["password"], target)
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		if errors.Is(err, account.ErrEmailTaken) { // the link is used up
			return err
		}
		return c.renderVerifyEmail(w, r, f)
	}
	if signedIn != nil {
		c.Cookie.SignIn(w, signedIn)
	}
	if target == "" {
		target = "/console/account?done=" + linkDone[l.Purpose]
	}
	redirect(w, r, target)
	return nil
}

// linkDone are the notices of used links.
var linkDone = map[account.LinkPurpose]string{
	account.VerifyEmail: "email-verified", account.ConfirmEmailChange: "email-confirmed", account.ChangeEmail: "email-changed",
}

// renderVerifyEmail shows what a link does, and asks for the password if the browser is not signed in to its account.
func (c *console) renderVerifyEmail(w http.ResponseWriter, r *http.Request, f *form) error {
	l, err := c.Identity.Link(r.Context(), identity.ClientOf(r, c.Cookie), f.values["token"])
	if err != nil {
		return err
	}
	user, err := c.authenticate(r)
	if err != nil && !errors.Is(err, identity.ErrSignedOut) {
		return err
	}
	if err != nil || user.owner.ID != l.AccountID {
		user = currentUser{}
	}
	return c.render(w, r, user, "verify-email", view{Title: "Confirm an address", Section: "sign-in", Form: f, Body: l})
}
