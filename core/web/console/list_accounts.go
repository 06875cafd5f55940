package console

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

const accountsPath = "/console/accounts"

// listAccounts answers GET /console/accounts: the accounts that the person can act on.
func (c *console) listAccounts(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readQuery(r)
	if err != nil {
		return err
	}
	return c.renderAccounts(w, r, user, f)
}

func (c *console) renderAccounts(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	memberships, err := c.Store.Memberships(r.Context(), user.owner.ID)
	if err != nil {
		return err
	}
	return c.render(w, r, user, "accounts", view{Title: "Your accounts", Section: "accounts", Form: f, Body: map[string]any{
		"Memberships": memberships, "Current": user.principal.Account.ID, "Own": user.owner.ID, "FormToken": newFormToken(), "Most": account.MaxSharedAccounts,
	}})
}

// actOn answers POST /console/accounts/act: it switches the session to another account.
func (c *console) actOn(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "account")
	if err != nil {
		return err
	}
	id, err := uuid.Parse(f.values["account"])
	if err != nil {
		return account.ErrNotMember
	}
	if err := c.Identity.Act(r.Context(), identity.ClientOf(r, c.Cookie), user.principal, id); err != nil {
		return err
	}
	redirect(w, r, accountsPath+"?done=acting")
	return nil
}

// shareAccount answers POST /console/accounts/share with a new account that nobody signs in to.
func (c *console) shareAccount(w http.ResponseWriter, r *http.Request, user currentUser) error {
	f, err := readForm(r, "name", "formToken")
	if err != nil {
		return err
	}
	if f.ok() {
		if err := f.note(c.makeShared(r, user, f)); err != nil {
			return err
		}
	}
	if !f.ok() {
		return c.renderAccounts(w, r, user, f)
	}
	redirect(w, r, membersPath+"?done=shared")
	return nil
}

func (c *console) makeShared(r *http.Request, user currentUser, f *form) error {
	// An invalid field is reported before an invalid form token.
	if _, err := account.NewSharedAccount(f.values["name"], c.Store.Now()); err != nil {
		return err
	}
	token, err := formToken(user, f)
	if err != nil {
		return err
	}
	_, err = c.Identity.CreateShared(r.Context(), identity.ClientOf(r, c.Cookie), user.principal, identity.SharedRequest{Name: f.values["name"], FormToken: token})
	return err
}
