package console

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

// showAccount answers GET /console/account.
func (c *console) showAccount(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readQuery(r, "error")
	if err != nil {
		return err
	}
	if text := linkFailures[f.values["error"]]; text != "" {
		f.add(pageError{status: http.StatusOK, Text: text})
	}
	return c.renderAccount(w, r, user, f)
}

func (c *console) renderAccount(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	sessions, err := c.Identity.Sessions(r.Context(), user.owner.ID)
	if err != nil {
		return err
	}
	identities, err := c.Identity.Identities(r.Context(), user.owner.ID)
	if err != nil {
		return err
	}
	email := ""
	if user.owner.HasEmail() {
		email = user.owner.Email
	}
	return c.render(w, r, user, "account", view{Title: "Account", Section: "account", Form: f, Body: map[string]any{
		"Email": email, "Mail": c.Identity.MailQueued != nil, "Ways": c.waysIn(identities), "Sessions": sessions, "This": user.session.ID,
		"Now": c.Store.Now(), "Password": user.owner.PasswordHash != "",
	}})
}

// revokeSession answers POST /console/account/revoke-session.
func (c *console) revokeSession(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "session")
	if err != nil {
		return err
	}
	id, err := uuid.Parse(f.values["session"])
	if err != nil {
		return account.ErrNotFound
	}
	if err := c.Identity.RevokeSession(r.Context(), identity.ClientOf(r, c.Cookie), user.owner.ID, id); err != nil {
		return err
	}
	redirect(w, r, "/console/account?done=revoked")
	return nil
}

// revokeOtherSessions answers POST /console/account/revoke-others.
func (c *console) revokeOtherSessions(w http.ResponseWriter, r *http.Request, user currentUser) error {
	if _, err := readForm(r); err != nil {
		return err
	}
	if _, err := c.Identity.RevokeOtherSessions(r.Context(), identity.ClientOf(r, c.Cookie), user.session); err != nil {
		return err
	}
	redirect(w, r, "/console/account?done=revoked-all")
	return nil
}

// deleteAccount answers POST /console/account/delete. The password confirms it; an account without a password needs a recent
// session.
func (c *console) deleteAccount(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "password")
	if err != nil {
		return err
	}
	if f.ok() {
		err = c.Identity.DeleteAccount(r.Context(), c.confirming(r, f), user.principal)
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderAccount(w, r, user, f)
	}
	c.Cookie.Clear(w)
	redirect(w, r, "/console/sign-in?done=account-ended")
	return nil
}
