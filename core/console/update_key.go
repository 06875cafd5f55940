package console

import (
	"net/http"

	"intents.internal/core/access"
	"intents.internal/core/account"
)

// renameKey answers POST /console/keys/{id}/rename.
func (c *console) renameKey(w http.ResponseWriter, r *http.Request, in who) error {
	f, err := readForm(r, "name")
	if err != nil {
		return err
	}
	name := f.values["name"]
	return c.changeKey(w, r, in, f, account.KeyChange{Name: &name}, "renamed")
}

// enableKey answers POST /console/keys/{id}/enable.
func (c *console) enableKey(w http.ResponseWriter, r *http.Request, in who) error {
	return c.switchKey(w, r, in, true, "enabled")
}

// disableKey answers POST /console/keys/{id}/disable.
func (c *console) disableKey(w http.ResponseWriter, r *http.Request, in who) error {
	return c.switchKey(w, r, in, false, "disabled")
}

func (c *console) switchKey(w http.ResponseWriter, r *http.Request, in who, enabled bool, done string) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	return c.changeKey(w, r, in, f, account.KeyChange{Enabled: &enabled}, done)
}

// expireKey answers POST /console/keys/{id}/expire with another expiry, counted from now.
func (c *console) expireKey(w http.ResponseWriter, r *http.Request, in who) error {
	f, err := readForm(r, "expiresIn")
	if err != nil {
		return err
	}
	var change account.KeyChange
	if f.ok() {
		lifetime, err := f.lifetime("expiresIn")
		if err := f.note(err); err != nil {
			return err
		}
		change.ExpiresIn = &lifetime
	}
	return c.changeKey(w, r, in, f, change, "expiry")
}

// changeKey makes a change and goes back to the key's page, where done says so.
func (c *console) changeKey(w http.ResponseWriter, r *http.Request, in who, f *form, change account.KeyChange, done string) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	if f.ok() {
		_, err = c.Access.UpdateKey(r.Context(), access.VisitorOf(r, c.Cookie), in.owner.ID, id, change)
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderKey(w, r, in, f)
	}
	redirect(w, r, above(r.URL.Path)+"?done="+done)
	return nil
}
