package console

import (
	"net/http"

	"intents.internal/core/identity"
)

// showSignUp answers GET /console/sign-up.
func (c *console) showSignUp(w http.ResponseWriter, r *http.Request, _ currentUser) error {
	f, err := readQuery(r, "next")
	if err != nil {
		return err
	}
	if _, err := c.authenticate(r); err == nil {
		redirect(w, r, safeNext(f.values["next"]))
		return nil
	}
	return c.renderSignUp(w, r, f)
}

// signUp answers POST /console/sign-up: it creates an account and signs in. If mail is configured, the response is the same for
// an address that has an account, and the mailed link continues the sign-up.
func (c *console) signUp(w http.ResponseWriter, r *http.Request, _ currentUser) error {
	f, err := readForm(r, "name", "email", "password", "next")
	if err != nil {
		return err
	}
	var signedIn *identity.SignedIn
	if f.ok() {
		signedIn, err = c.Identity.SignUp(r.Context(), identity.ClientOf(r, c.Cookie), f.values["name"], f.values["email"], f.values["password"], "")
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderSignUp(w, r, f)
	}
	if signedIn.Session == nil {
		return c.render(w, r, currentUser{}, "sign-up-sent", view{Title: "Look at your mail", Section: "sign-up", Form: f})
	}
	c.Cookie.SignIn(w, signedIn)
	target := safeNext(f.values["next"])
	if target == home {
		target += "?done=signed-up"
	}
	redirect(w, r, target)
	return nil
}

func (c *console) renderSignUp(w http.ResponseWriter, r *http.Request, f *form) error {
	return c.render(w, r, currentUser{}, "sign-up", view{Title: "Sign up", Section: "sign-up", Form: f, Body: map[string]any{
		"Open": c.Identity.SignUpOpen, "Mail": c.Identity.MailQueued != nil, "Next": safeNext(f.values["next"]),
	}})
}
