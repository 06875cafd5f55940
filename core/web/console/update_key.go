package console

import (
	"net/http"

	"intents.internal/core/identity/account"
)

// renameKey answers POST /console/keys/{id}/rename.
func (c *console) renameKey(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	name := f.values["name"]
	return c.changeKey(r, user, f, account.KeyChange{Name: &name}, "renamed")
}

// enableKey answers POST /console/keys/{id}/enable.
func (c *console) enableKey(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	enabled := true
	return c.changeKey(r, user, f, account.KeyChange{Enabled: &enabled}, "enabled")
}

// disableKey answers POST /console/keys/{id}/disable.
func (c *console) disableKey(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	enabled := false
	return c.changeKey(r, user, f, account.KeyChange{Enabled: &enabled}, "disabled")
}

// expireKey answers POST /console/keys/{id}/expire with a new expiry, counted from now.
func (c *console) expireKey(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	lifetime, err := f.parseExpiresIn("expiresIn")
	if err != nil {
		return "", err
	}
	return c.changeKey(r, user, f, account.KeyChange{ExpiresIn: &lifetime}, "expiry")
}

// restrictKey answers POST /console/keys/{id}/restrict with new scopes and networks.
func (c *console) restrictKey(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	scopes, networks, err := f.restrictions()
	if err != nil {
		return "", err
	}
	return c.changeKey(r, user, f, account.KeyChange{Scopes: &scopes, Networks: &networks}, "restricted")
}

// changeKey changes the key and returns the path of its page with the notice done.
func (c *console) changeKey(r *http.Request, user currentUser, f *form, change account.KeyChange, done string) (string, error) {
	id, err := idOf(r)
	if err != nil {
		return "", err
	}
	_, err = c.Identity.Keys.Update(r.Context(), c.confirming(r, f), user.principal, id, change)
	return parentPath(r.URL.Path) + "?done=" + done, err
}
