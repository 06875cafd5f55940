package console

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

const (
	linkPath   = "/console/account/link"
	unlinkPath = "/console/account/unlink"
)

// linkFailures are the texts for a failed OpenID Connect link, by the query parameter error.
var linkFailures = map[string]string{
	"oidc_denied":         "You did not finish signing in at the provider, so nothing was linked.",
	"oidc_failed":         "The sign-in provider did not confirm who you are, so nothing was linked. Try again.",
	"flow_expired":        "Linking took too long, or was begun in another session. Try again.",
	"identity_taken":      "Another account signs in this way, so nothing was linked. Sign in to that account and unlink it there first.",
	"too_many_identities": "The account has as many ways to sign in as it may. Unlink one first.",
}

// showLink answers GET /console/account/link: the ways to sign in that can be linked.
func (c *console) showLink(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	return c.renderLink(w, r, user, f, "")
}

// linkOpenIDConnect answers POST /console/account/link/openid-connect with a page that goes on to the provider. It does not
// redirect, because browsers also apply form-action to the redirects of a form; and it is not a GET, because other sites could
// link to that.
func (c *console) linkOpenIDConnect(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	target, flow, err := c.Identity.Persons.StartLink(r.Context(), c.confirming(r, f), user.principal)
	if err != nil {
		return "", err
	}
	identity.NewFlowCookie(c.PublicURL).Add(w, r, flow, "")
	return "", c.renderLink(w, r, user, f, target)
}

func (c *console) renderLink(w http.ResponseWriter, r *http.Request, user currentUser, f *form, target string) error {
	return c.render(w, r, user, "link", view{Title: "Link a way to sign in", Section: "account", Form: f, Body: map[string]any{
		"OpenIDConnect": c.Identity.Persons.OIDCName(), "Continue": target,
	}})
}

// wayIn is an identity as the account page shows it.
type wayIn struct {
	account.LinkedIdentity
	Name string
	// Off is true for an identity that cannot sign in with what the operator has configured.
	Off bool
}

func (c *console) waysIn(identities []account.LinkedIdentity) []wayIn {
	ways := make([]wayIn, len(identities))
	for i, linked := range identities {
		ways[i] = wayIn{LinkedIdentity: linked, Name: c.nameOf(linked.Identity), Off: !c.Identity.Persons.CanSignIn(linked.Identity)}
	}
	return ways
}

// nameOf returns an identity's display name.
func (c *console) nameOf(i account.Identity) string {
	chain, wallet := i.IsWallet()
	switch {
	case wallet && chain.Reference != "":
		return "Smart account on " + chain.String()
	case wallet:
		return "Wallet"
	case c.Identity.Persons.CanSignIn(i):
		return c.Identity.Persons.OIDCName()
	default:
		return i.Issuer
	}
}
