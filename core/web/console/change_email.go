package console

import (
	"net/http"

	"intents.internal/core/identity"
)

const emailPath = "/console/account/email"

// sendVerification answers POST /console/account/send-verification.
func (c *console) sendVerification(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	if err := f.note(c.Identity.SendVerificationEmail(r.Context(), identity.ClientOf(r, c.Cookie), user.owner.Email, "")); err != nil {
		return err
	}
	if !f.ok() {
		return c.renderAccount(w, r, user, f)
	}
	redirect(w, r, "/console/account?done=verification-sent")
	return nil
}

// showEmail answers GET /console/account/email.
func (c *console) showEmail(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readQuery(r)
	if err != nil {
		return err
	}
	return c.renderEmail(w, r, user, f)
}

// changeEmail answers POST /console/account/email. The response is the same for an address that another account has.
func (c *console) changeEmail(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "newEmail")
	if err != nil {
		return err
	}
	if f.ok() {
		err := c.Identity.ChangeEmail(r.Context(), identity.ClientOf(r, c.Cookie), user.principal, f.values["newEmail"], "")
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderEmail(w, r, user, f)
	}
	redirect(w, r, "/console/account?done=email-requested")
	return nil
}

func (c *console) renderEmail(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	return c.render(w, r, user, "email", view{Title: "Change your address", Section: "account", Form: f, Body: map[string]any{
		"Mail": c.Identity.MailQueued != nil, "Has": user.owner.HasEmail(), "Verified": user.owner.HasEmail() && user.owner.EmailVerified(),
	}})
}
