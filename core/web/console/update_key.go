package console

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

// renameKey answers POST /console/keys/{id}/rename.
func (c *console) renameKey(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "name")
	if err != nil {
		return err
	}
	name := f.values["name"]
	return c.changeKey(w, r, user, f, account.KeyChange{Name: &name}, "renamed")
}

// enableKey answers POST /console/keys/{id}/enable.
func (c *console) enableKey(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.switchKey(w, r, user, true, "enabled")
}

// disableKey answers POST /console/keys/{id}/disable.
func (c *console) disableKey(w http.ResponseWriter, r *http.Request, user currentUser) error {
	return c.switchKey(w, r, user, false, "disabled")
}

func (c *console) switchKey(w http.ResponseWriter, r *http.Request, user currentUser, enabled bool, done string) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	return c.changeKey(w, r, user, f, account.KeyChange{Enabled: &enabled}, done)
}

// expireKey answers POST /console/keys/{id}/expire with a new expiry, counted from now.
func (c *console) expireKey(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "expiresIn")
	if err != nil {
		return err
	}
	var change account.KeyChange
	if f.ok() {
		lifetime, err := f.parseExpiresIn("expiresIn")
		if err := f.note(err); err != nil {
			return err
		}
		change.ExpiresIn = &lifetime
	}
	return c.changeKey(w, r, user, f, change, "expiry")
}

// restrictKey answers POST /console/keys/{id}/restrict with new scopes and networks.
func (c *console) restrictKey(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, restrictionFields...)
	if err != nil {
		return err
	}
	var change account.KeyChange
	if f.ok() {
		scopes, networks, err := f.restrictions()
		if err := f.note(err); err != nil {
			return err
		}
		change.Scopes, change.Networks = &scopes, &networks
	}
	return c.changeKey(w, r, user, f, change, "restricted")
}

// changeKey changes the key and redirects to its page, which shows the notice done.
func (c *console) changeKey(w http.ResponseWriter, r *http.Request, user currentUser, f *form, change account.KeyChange, done string) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	if f.ok() {
		_, err = c.Identity.UpdateKey(r.Context(), identity.ClientOf(r, c.Cookie), user.principal.Account.ID, id, change)
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderKey(w, r, user, f)
	}
	redirect(w, r, parentPath(r.URL.Path)+"?done="+done)
	return nil
}
