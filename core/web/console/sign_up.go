package console

import "net/http"

// showSignUp answers GET /console/sign-up.
func (c *console) showSignUp(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) error {
	if r.Method != http.MethodPost && c.isSignedIn(r) {
		redirect(w, r, safeNext(f.values["next"]))
		return nil
	}
	return c.render(w, r, currentUser{}, "sign-up", view{Title: "Sign up", Section: "sign-up", Form: f, Body: map[string]any{
		"Open": c.Identity.SignUpOpen, "Mail": c.Identity.MailQueued != nil, "Next": safeNext(f.values["next"]),
	}})
}

// signUp answers POST /console/sign-up: it creates an account and signs in. If mail is configured, the response is the same for
// an address that has an account, and the mailed link continues the sign-up.
func (c *console) signUp(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) (string, error) {
	signedIn, err := c.Identity.Persons.SignUp(r.Context(), c.client(r), f.values["name"], f.values["email"], f.values["password"], "")
	if err != nil {
		return "", err
	}
	if signedIn.Session == nil {
		return "", c.render(w, r, currentUser{}, "sign-up-sent", view{Title: "Look at your mail", Section: "sign-up", Form: f})
	}
	c.Cookie.SignIn(w, signedIn)
	target := safeNext(f.values["next"])
	if target == home {
		target += "?done=signed-up"
	}
	return target, nil
}
