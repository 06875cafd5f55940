package console

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

const accountsPath = "/console/accounts"

// listAccounts answers GET /console/accounts: the accounts that the person can act on.
func (c *console) listAccounts(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	memberships, err := c.Identities.Memberships(r.Context(), user.owner.ID)
	if err != nil {
		return err
	}
	return c.render(w, r, user, "accounts", view{Title: "Your accounts", Section: "accounts", Form: f, Body: map[string]any{
		"Memberships": memberships, "Current": user.principal.Account.ID, "Own": user.owner.ID, "FormToken": newFormToken(), "Most": account.MaxSharedAccounts,
	}})
}

// actOn answers POST /console/accounts/act: it switches the session to another account.
func (c *console) actOn(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	id, err := uuid.Parse(f.values["account"])
	if err != nil {
		return "", account.ErrNotMember
	}
	return accountsPath + "?done=acting", c.Identity.Members.Act(r.Context(), c.client(r), user.principal, id)
}

// shareAccount answers POST /console/accounts/share with a new account that nobody signs in to.
func (c *console) shareAccount(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	// An invalid field is reported before an invalid form token.
	if _, err := account.NewSharedAccount(f.values["name"], c.Now()); err != nil {
		return "", err
	}
	token, err := formToken(user, f)
	if err != nil {
		return "", err
	}
	_, err = c.Identity.Members.CreateShared(r.Context(), c.client(r), user.principal, identity.SharedRequest{Name: f.values["name"], FormToken: token})
	return membersPath + "?done=shared", err
}
