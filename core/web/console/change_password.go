package console

import "net/http"

const passwordPath = "/console/account/password"

// showPassword answers GET /console/account/password.
func (c *console) showPassword(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	return c.render(w, r, user, "password", view{
		Title: "Change your password", Section: "account", Form: f, Body: map[string]any{"Password": user.owner.PasswordHash != ""},
	})
}

// changePassword answers POST /console/account/password. The browser gets a new session, and all other sessions end.
func (c *console) changePassword(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	signedIn, err := c.Identity.Persons.ChangePassword(r.Context(), c.client(r), user.principal, f.values["password"], f.values["newPassword"])
	if err != nil {
		return "", err
	}
	c.Cookie.SignIn(w, signedIn)
	return "/console/account?done=password-changed", nil
}
