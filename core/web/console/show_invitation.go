package console

import (
	"errors"
	"net/http"
	"net/url"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

const invitationPath = identity.InvitationPath

// showInvitation answers GET /console/invitation, the target of an invitation's link, with or without a session. A GET does not
// use the link up, because mail scanners follow links.
func (c *console) showInvitation(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) error {
	user, err := authenticate(r)
	if err != nil && !errors.Is(err, identity.ErrSignedOut) {
		return err
	}
	invitation, err := c.Identity.Invitation(r.Context(), c.client(r), f.values["token"])
	if err != nil {
		return c.renderError(w, r, user, err)
	}
	back := url.Values{"next": {invitationPath + "?" + url.Values{"token": {f.values["token"]}}.Encode()}}.Encode()
	return c.render(w, r, user, "invitation", view{Title: "Invitation", Form: f, Body: map[string]any{
		"Invitation": invitation, "SignIn": "/console/sign-in?" + back, "SignUp": "/console/sign-up?" + back, "Open": c.Identity.SignUpOpen,
		"For": user.owner != nil && invitation.For(user.owner) == nil,
	}})
}

// acceptInvitation answers POST /console/invitation/accept: the person becomes a member, and the session acts on the account.
func (c *console) acceptInvitation(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	_, _, err := c.Identity.Members.AcceptInvitation(r.Context(), c.client(r), user.principal, f.values["token"])
	if errors.Is(err, account.ErrAlreadyMember) {
		return accountsPath, nil
	}
	return accountsPath + "?done=joined", err
}

// declineInvitation answers POST /console/invitation/decline.
func (c *console) declineInvitation(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	_, err := c.Identity.Members.DeclineInvitation(r.Context(), c.client(r), user.principal, f.values["token"])
	return accountsPath + "?done=declined", err
}
