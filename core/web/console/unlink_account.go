package console

import (
	"net/http"
	"slices"

	"intents.internal/core/identity/account"
)

// unlink answers POST /console/account/unlink. The account's other sessions end.
func (c *console) unlink(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	unlinked := account.Identity{Issuer: f.values["issuer"], Subject: f.values["subject"]}
	return "/console/account?done=unlinked", c.Identity.Persons.Unlink(r.Context(), c.confirming(r, f), user.principal, unlinked)
}

// confirmUnlink answers GET /console/account/unlink, whose query names the identity.
func (c *console) confirmUnlink(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	identities, err := c.Identity.Persons.Identities(r.Context(), user.owner.ID)
	if err != nil {
		return err
	}
	named := account.Identity{Issuer: f.values["issuer"], Subject: f.values["subject"]}
	at := slices.IndexFunc(identities, func(i account.LinkedIdentity) bool { return i.Identity == named })
	if at < 0 {
		return account.ErrIdentityNotFound
	}
	return c.render(w, r, user, "unlink", view{Title: "Unlink a way to sign in", Section: "account", Form: f, Body: map[string]any{
		"Way": c.waysIn(identities[at : at+1])[0],
	}})
}
