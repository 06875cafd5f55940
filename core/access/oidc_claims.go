package access

import (
	"context"
	"errors"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"intents.internal/core/account"
)

// claims is what a provider says of a person.
type claims struct {
	Name          string `json:"name"`
	Email         string `json:"email"`
	EmailVerified any    `json:"email_verified"` // some write the boolean as a string
}

// claims reads the ID token, and asks the user info endpoint for what is not there: in the code flow the claims of a scope
// come from that endpoint (OpenID Connect Core, section 5.4).
func (p *provider) claims(ctx context.Context, tokens *oauth2.Token, idToken *oidc.IDToken) (claims, error) {
	var said claims
	if err := idToken.Claims(&said); err != nil {
		return claims{}, err
	}
	if said.Email != "" && said.Name != "" || p.UserInfoEndpoint() == "" {
		return said, nil
	}
	info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return claims{}, err
	}
	if info.Subject != idToken.Subject {
		return claims{}, errors.New("the user info is about somebody else")
	}
	var more claims
	if err := info.Claims(&more); err != nil {
		return claims{}, err
	}
	if said.Email == "" {
		said.Email, said.EmailVerified = more.Email, more.EmailVerified
	}
	if said.Name == "" {
		said.Name = more.Name
	}
	return said, nil
}

// account makes the person's account. Without a verified address that can be used here it gets one that nobody can own.
func (c claims) account(identity account.Identity, now time.Time) (*account.Account, error) {
	email := c.Email
	if c.EmailVerified != true && c.EmailVerified != "true" {
		email = ""
	}
	made, _, err := account.NewOIDCAccount(identity.Issuer, identity.Subject, c.Name, email, now)
	if invalid, ok := errors.AsType[*account.InvalidError](err); ok && invalid.Field == "email" {
		made, _, err = account.NewOIDCAccount(identity.Issuer, identity.Subject, c.Name, "", now)
	}
	return made, err
}
