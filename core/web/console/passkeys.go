package console

import (
	"net/http"
	"slices"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

const (
	renamePasskeyPath = "/console/account/rename-passkey"
	removePasskeyPath = "/console/account/remove-passkey"
)

// passkeysView is the section of the account page about passkeys.
type passkeysView struct {
	// On is false where browsers know no passkeys: then the section is left out.
	On   bool
	List []*account.Passkey
	// Most is reached with this number of passkeys.
	Most bool
}

func (c *console) passkeysOf(r *http.Request, user currentUser) (passkeysView, error) {
	if !c.Identity.Persons.PasskeysOn() {
		return passkeysView{}, nil
	}
	list, err := c.Identity.Persons.Passkeys(r.Context(), user.owner.ID)
	return passkeysView{On: true, List: list, Most: len(list) >= account.MaxPasskeys}, err
}

// renamePasskey answers POST /console/account/rename-passkey.
func (c *console) renamePasskey(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	id, err := uuid.Parse(f.values["passkey"])
	if err != nil {
		return "", account.ErrNoPasskey
	}
	_, err = c.Identity.Persons.RenamePasskey(r.Context(), c.client(r), user.principal, id, f.values["name"])
	return "/console/account?done=passkey-renamed", err
}

// removePasskey answers POST /console/account/remove-passkey.
func (c *console) removePasskey(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	id, err := uuid.Parse(f.values["passkey"])
	if err != nil {
		return "", account.ErrNoPasskey
	}
	return "/console/account?done=passkey-removed", c.Identity.Persons.DeletePasskey(r.Context(), c.client(r), user.principal, id)
}

// confirmRemovePasskey answers GET /console/account/remove-passkey, whose query names the passkey.
func (c *console) confirmRemovePasskey(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	list, err := c.Identity.Persons.Passkeys(r.Context(), user.owner.ID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(p *account.Passkey) bool { return f.is("passkey", p.ID.String()) })
	if at < 0 {
		return account.ErrNoPasskey
	}
	return c.render(w, r, user, "remove-passkey", view{Title: "Remove a passkey", Section: "account", Form: f, Body: list[at]})
}
