package console

import (
	"net/http"
	"slices"

	"intents.internal/core/identity/account"
)

// confirmUnlink answers GET /console/account/unlink, whose query names the identity.
func (c *console) confirmUnlink(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readQuery(r, "issuer", "subject")
	if err != nil {
		return err
	}
	return c.renderUnlink(w, r, user, f)
}

// unlink answers POST /console/account/unlink. The account's other sessions end.
func (c *console) unlink(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "issuer", "subject", "password")
	if err != nil {
		return err
	}
	if f.ok() {
		unlinked := account.Identity{Issuer: f.values["issuer"], Subject: f.values["subject"]}
		err = c.Identity.Unlink(r.Context(), c.confirming(r, f), user.principal, unlinked)
		if err := f.note(err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderUnlink(w, r, user, f)
	}
	redirect(w, r, "/console/account?done=unlinked")
	return nil
}

func (c *console) renderUnlink(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	identities, err := c.Identity.Identities(r.Context(), user.owner.ID)
	if err != nil {
		return err
	}
	named := account.Identity{Issuer: f.values["issuer"], Subject: f.values["subject"]}
	at := slices.IndexFunc(identities, func(i account.LinkedIdentity) bool { return i.Identity == named })
	if at < 0 {
		return account.ErrIdentityNotFound
	}
	return c.render(w, r, user, "unlink", view{Title: "Unlink a way to sign in", Section: "account", Form: f, Body: map[string]any{
		"Way": c.waysIn(identities[at : at+1])[0], "Confirm": c.confirmation(user),
	}})
}
