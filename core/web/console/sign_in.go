package console

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"intents.internal/core/identity"
)

// showSignIn answers GET /console/sign-in.
func (c *console) showSignIn(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) error {
	if r.Method != http.MethodPost && c.isSignedIn(r) {
		redirect(w, r, safeNext(f.values["next"]))
		return nil
	}
	if text := failures[f.values["error"]]; text != "" {
		f.add(pageError{status: http.StatusOK, Text: text})
	}
	return c.render(w, r, currentUser{}, "sign-in", view{Title: "Sign in", Section: "sign-in", Form: f, Body: map[string]any{
		"Passkeys": c.Identity.Persons.PasskeysOn(), "Next": safeNext(f.values["next"]), "OpenIDConnect": c.Identity.Persons.OIDCName(), "SignUp": c.Identity.SignUpOpen,
	}})
}

func (c *console) isSignedIn(r *http.Request) bool {
	_, err := authenticate(r)
	return err == nil
}

// failures are the texts for a failed OpenID Connect sign-in, by the query parameter error.
var failures = map[string]string{
	"oidc_denied":    "You did not finish signing in at the provider.",
	"oidc_failed":    "The sign-in provider did not confirm who you are. Try again, or sign in another way.",
	"flow_expired":   "Signing in took too long, or was begun in another browser. Try again.",
	"email_taken":    "An account with your e-mail address exists already. Sign in to it with its password, or ask for a link to a new one.",
	"sign_up_closed": "You have no account here, and sign-up is closed. Ask the operator of this service for one.",
}

// signIn answers POST /console/sign-in. The response is the same for a wrong password and for an address without an account.
func (c *console) signIn(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) (string, error) {
	signedIn, err := c.Identity.Persons.SignIn(r.Context(), c.client(r), f.values["email"], f.values["password"])
	if err != nil {
		return "", err
	}
	c.Cookie.SignIn(w, signedIn)
	return safeNext(f.values["next"]), nil
}

// signOut answers POST /console/sign-out.
func (c *console) signOut(w http.ResponseWriter, r *http.Request, _ currentUser) error {
	if err := c.Identity.Sessions.SignOut(r.Context(), c.client(r)); err != nil {
		return err
	}
	c.Cookie.Clear(w)
	redirect(w, r, "/console/sign-in?done=signed-out")
	return nil
}

// safeNext returns the page after sign-in: the requested path if it is in the console, otherwise the console's first page. This
// prevents an open redirect: a path that a browser could resolve outside the console is rejected.
func safeNext(next string) string {
	u, err := url.Parse(next)
	switch {
	case err != nil, !identity.LocalPath(next), u.Fragment != "", u.EscapedPath() != path.Clean(u.Path),
		u.Path != home && !strings.HasPrefix(u.Path, home+"/"),
		strings.HasPrefix(u.Path, "/console/sign-"):
		return home
	}
	return u.RequestURI()
}
