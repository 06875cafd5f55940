package console

import (
	"errors"
	"net/http"
	"net/url"

	"intents.internal/core/identity"
)

// confirmPath is the page on which a person confirms that it is them, for ten minutes, and which leads back to the page that asked for it.
const confirmPath = "/console/account/confirm"

// confirmFor returns the URL of the page that confirms and leads back to the request's page.
func confirmFor(r *http.Request) string {
	next := r.URL.RequestURI()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		next = parentPath(r.URL.Path)
	}
	return confirmPath + "?" + url.Values{"next": {next}}.Encode()
}

// showConfirm answers GET /console/account/confirm: with a passkey, or the password of a person who has none.
func (c *console) showConfirm(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	next, needs := safeNext(f.values["next"]), c.Identity.Sessions.ConfirmationOf(user.principal)
	if needs == nil && r.Method != http.MethodPost {
		redirect(w, r, next)
		return nil
	}
	return c.render(w, r, user, "confirm-person", view{Title: "Confirm it is you", Section: "account", Form: f, Body: map[string]any{
		"Next": next, "Passkey": errors.Is(needs, identity.ErrPasskeyNeeded), "Password": user.owner.PasswordHash != "",
		"OpenIDConnect": c.Identity.Persons.ConfirmingOIDCName(),
	}})
}

// confirmPerson answers POST /console/account/confirm with the password of a person without a passkey.
func (c *console) confirmPerson(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	return safeNext(f.values["next"]), c.Identity.Sessions.Confirm(r.Context(), c.confirming(r, f), user.principal)
}
