package console

import (
	"cmp"
	"errors"
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

// followLink answers POST /console/verify-email. A browser that is not signed in to the account sends its password.
func (c *console) followLink(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	target, err := c.Identity.Callback("callbackURL", f.values["callbackURL"])
	if err != nil { // the service never issues such a link
		return "", errUnknownField
	}
	l, signedIn, err := c.Identity.Persons.FollowLink(r.Context(), c.client(r), f.values["token"], f.values["password"], target)
	if errors.Is(err, account.ErrEmailTaken) { // the link is used up
		return "", c.renderError(w, r, user, err)
	}
	if err != nil {
		return "", err
	}
	if signedIn != nil {
		c.Cookie.SignIn(w, signedIn)
	}
	return cmp.Or(target, "/console/account?done="+linkDone[l.Purpose]), nil
}

// linkDone are the notices of used links.
var linkDone = map[account.LinkPurpose]string{
	account.VerifyEmail: "email-verified", account.ConfirmEmailChange: "email-confirmed", account.ChangeEmail: "email-changed",
}

// showVerifyEmail answers GET /console/verify-email, the target of a mailed verification link: it shows what the link does, and
// asks for the password if the browser is not signed in to its account. A GET does not use the link up, because mail scanners
// follow links.
func (c *console) showVerifyEmail(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) error {
	l, err := c.Identity.Persons.Link(r.Context(), c.client(r), f.values["token"])
	if err != nil {
		return err
	}
	user, err := authenticate(r)
	if err != nil && !errors.Is(err, identity.ErrSignedOut) {
		return err
	}
	if err != nil || user.owner.ID != l.AccountID {
		user = currentUser{}
	}
	return c.render(w, r, user, "verify-email", view{Title: "Confirm an address", Section: "sign-in", Form: f, Body: l})
}
