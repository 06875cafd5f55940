package console

import "net/http"

const emailPath = "/console/account/email"

// sendVerification answers POST /console/account/send-verification.
func (c *console) sendVerification(_ http.ResponseWriter, r *http.Request, user currentUser, _ *form) (string, error) {
	return "/console/account?done=verification-sent", c.Identity.Persons.SendVerificationEmail(r.Context(), c.client(r), user.owner.Email, "")
}

// showEmail answers GET /console/account/email.
func (c *console) showEmail(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	return c.render(w, r, user, "email", view{Title: "Change your address", Section: "account", Form: f, Body: map[string]any{
		"Mail": c.Identity.MailQueued != nil, "Has": user.owner.HasEmail(), "Verified": user.owner.HasEmail() && user.owner.EmailVerified(),
	}})
}

// changeEmail answers POST /console/account/email. The response is the same for an address that another account has.
func (c *console) changeEmail(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	return "/console/account?done=email-requested", c.Identity.Persons.ChangeEmail(r.Context(), c.confirming(r, f), user.principal, f.values["newEmail"], "")
}
