package console

import (
	"net/http"

	"intents.internal/core/identity"
)

const (
	forgotPath = "/console/forgot-password"
	resetPath  = identity.ResetPath
)

// showForgotPassword answers GET /console/forgot-password.
func (c *console) showForgotPassword(w http.ResponseWriter, r *http.Request, _ currentUser) error {
	f, err := readQuery(r)
	if err != nil {
		return err
	}
	return c.renderForgotPassword(w, r, f, false)
}

// forgotPassword answers POST /console/forgot-password. The response is the same for every address.
func (c *console) forgotPassword(w http.ResponseWriter, r *http.Request, _ currentUser) error {
	f, err := readForm(r, "email")
	if err != nil {
		return err
	}
	if f.ok() {
		if err := f.note(c.Identity.RequestPasswordReset(r.Context(), identity.ClientOf(r, c.Cookie), f.values["email"], "")); err != nil {
			return err
		}
	}
	return c.renderForgotPassword(w, r, f, f.ok())
}

func (c *console) renderForgotPassword(w http.ResponseWriter, r *http.Request, f *form, sent bool) error {
	return c.render(w, r, currentUser{}, "forgot-password", view{
		Title: "Forgot your password?", Section: "sign-in", Form: f, Body: map[string]any{"Mail": c.Identity.MailQueued != nil, "Sent": sent},
	})
}

// showResetPassword answers GET /console/reset-password, the target of the mailed link. A GET does not use the link up, because
// mail scanners follow links.
func (c *console) showResetPassword(w http.ResponseWriter, r *http.Request, _ currentUser) error {
	f, err := readQuery(r, "token")
	if err != nil {
		return err
	}
	return c.renderResetPassword(w, r, f)
}

// resetPassword answers POST /console/reset-password.
func (c *console) resetPassword(w http.ResponseWriter, r *http.Request, _ currentUser) error {
	f, err := readForm(r, "token", "newPassword", "unlinkAccounts")
	if err != nil {
		return err
	}
	done := "password-reset"
	if f.ok() {
		reset, err := c.Identity.ResetPassword(r.Context(), identity.ClientOf(r, c.Cookie), identity.ResetRequest{
			Token: f.values["token"], NewPassword: f.values["newPassword"], UnlinkAccounts: f.is("unlinkAccounts", "1"),
		})
		if err := f.note(err); err != nil {
			return err
		}
		if reset != nil {
			c.Cookie.KnowDevice(w, reset.Device)
		}
		if reset != nil && reset.Fresh {
			done = "account-fresh"
		}
	}
	if !f.ok() {
		return c.renderResetPassword(w, r, f)
	}
	// With a session of another account the browser would not get the sign-in page.
	if err := c.Identity.SignOut(r.Context(), identity.ClientOf(r, c.Cookie)); err != nil {
		return err
	}
	c.Cookie.Clear(w)
	redirect(w, r, "/console/sign-in?done="+done)
	return nil
}

func (c *console) renderResetPassword(w http.ResponseWriter, r *http.Request, f *form) error {
	identities, err := c.Identity.IdentitiesToReset(r.Context(), f.values["token"])
	if err != nil {
		return err
	}
	return c.render(w, r, currentUser{}, "reset-password", view{
		Title: "Choose another password", Section: "sign-in", Form: f, Body: map[string]any{"Ways": c.waysIn(identities)},
	})
}
