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
func (c *console) showForgotPassword(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) error {
	return c.renderForgotPassword(w, r, f, false)
}

// forgotPassword answers POST /console/forgot-password. The response is the same for every address.
func (c *console) forgotPassword(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) (string, error) {
	if err := c.Identity.Persons.RequestPasswordReset(r.Context(), c.client(r), f.values["email"], ""); err != nil {
		return "", err
	}
	return "", c.renderForgotPassword(w, r, f, true)
}

func (c *console) renderForgotPassword(w http.ResponseWriter, r *http.Request, f *form, sent bool) error {
	return c.render(w, r, currentUser{}, "forgot-password", view{
		Title: "Forgot your password?", Section: "sign-in", Form: f, Body: map[string]any{"Mail": c.Identity.MailQueued != nil, "Sent": sent},
	})
}

// showResetPassword answers GET /console/reset-password, the target of the mailed link. A GET does not use the link up, because
// mail scanners follow links.
func (c *console) showResetPassword(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) error {
	identities, err := c.Identity.Persons.IdentitiesToReset(r.Context(), f.values["token"])
	if err != nil {
		return err
	}
	return c.render(w, r, currentUser{}, "reset-password", view{
		Title: "Choose another password", Section: "sign-in", Form: f, Body: map[string]any{"Ways": c.waysIn(identities)},
	})
}

// resetPassword answers POST /console/reset-password.
func (c *console) resetPassword(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) (string, error) {
	reset, err := c.Identity.Persons.ResetPassword(r.Context(), c.client(r), identity.ResetRequest{
		Token: f.values["token"], NewPassword: f.values["newPassword"], UnlinkAccounts: f.is("unlinkAccounts", "1"),
	})
	if err != nil {
		return "", err
	}
	c.Cookie.KnowDevice(w, reset.Device)
	// With a session of another account the browser would not get the sign-in page.
	if err := c.Identity.Sessions.SignOut(r.Context(), c.client(r)); err != nil {
		return "", err
	}
	c.Cookie.Clear(w)
	if reset.Fresh {
		return "/console/sign-in?done=account-fresh", nil
	}
	return "/console/sign-in?done=password-reset", nil
}
