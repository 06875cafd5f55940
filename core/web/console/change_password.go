package console

import (
	"net/http"

	"intents.internal/core/identity"
)

const passwordPath = "/console/account/password"

// showPassword answers GET /console/account/password.
func (c *console) showPassword(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readQuery(r)
	if err != nil {
		return err
	}
	return c.renderPassword(w, r, user, f)
}

// changePassword answers POST /console/account/password. The browser gets a new session, and all other sessions end.
func (c *console) changePassword(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "password", "newPassword")
	if err != nil {
		return err
	}
	var signedIn *identity.SignedIn
	if f.ok() {
		signedIn, err = c.Identity.ChangePassword(
			r.Context(), identity.ClientOf(r, c.Cookie), user.principal, f.values["password"], f.values["newPassword"])
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderPassword(w, r, user, f)
	}
	c.Cookie.SignIn(w, signedIn)
	redirect(w, r, "/console/account?done=password-changed")
	return nil
}

func (c *console) renderPassword(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	return c.render(w, r, user, "password", view{
		Title: "Change your password", Section: "account", Form: f, Body: map[string]any{"Password": user.owner.PasswordHash != ""},
	})
}
