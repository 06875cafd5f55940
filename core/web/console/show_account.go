package console

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// showAccount answers GET /console/account.
func (c *console) showAccount(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	if text := linkFailures[f.values["error"]]; text != "" {
		f.add(pageError{status: http.StatusOK, Text: text})
	}
	sessions, err := c.Identity.Sessions.List(r.Context(), user.owner.ID)
	if err != nil {
		return err
	}
	identities, err := c.Identity.Persons.Identities(r.Context(), user.owner.ID)
	if err != nil {
		return err
	}
	passkeys, err := c.passkeysOf(r, user)
	if err != nil {
		return err
	}
	email := ""
	if user.owner.HasEmail() {
		email = user.owner.Email
	}
	return c.render(w, r, user, "account", view{Title: "Account", Section: "account", Form: f, Body: map[string]any{
		"Email": email, "Mail": c.Identity.MailQueued != nil, "Ways": c.waysIn(identities), "Sessions": sessions, "This": user.session.ID,
		"Passkeys": passkeys, "HasPasskey": user.session.HasPasskey, "Now": c.Now(), "Password": user.owner.PasswordHash != "",
	}})
}

// revokeSession answers POST /console/account/revoke-session.
func (c *console) revokeSession(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	id, err := uuid.Parse(f.values["session"])
	if err != nil {
		return "", account.ErrNotFound
	}
	return "/console/account?done=revoked", c.Identity.Sessions.Revoke(r.Context(), c.client(r), user.principal, id)
}

// revokeOtherSessions answers POST /console/account/revoke-others.
func (c *console) revokeOtherSessions(_ http.ResponseWriter, r *http.Request, user currentUser, _ *form) (string, error) {
	_, err := c.Identity.Sessions.RevokeOthers(r.Context(), c.client(r), user.principal)
	return "/console/account?done=revoked-all", err
}

// deleteAccount answers POST /console/account/delete. The password confirms it; an account without a password needs a recent
// session.
func (c *console) deleteAccount(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	if err := c.Identity.Persons.DeleteAccount(r.Context(), c.confirming(r, f), user.principal); err != nil {
		return "", err
	}
	c.Cookie.Clear(w)
	return "/console/sign-in?done=account-ended", nil
}
