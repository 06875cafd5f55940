package identity

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"intents.internal/core/identity/account"
)

// claims are the provider's claims about a person.
type claims struct {
	Name          string `json:"name"`
	Email         string `json:"email"`
	EmailVerified any    `json:"email_verified"` // some providers send the boolean as a string
}

// complete reports whether no claim that is used is missing. An address counts only with email_verified.
func (c claims) complete() bool { return c.Name != "" && c.Email != "" && c.EmailVerified != nil }

// with returns the claims with those of other that are missing. email_verified is about the address beside it, so it is taken for the
// same address only.
func (c claims) with(other claims) claims {
	c.Name = cmp.Or(c.Name, other.Name)
	switch {
	case c.Email == "":
		c.Email, c.EmailVerified = other.Email, other.EmailVerified
	case c.EmailVerified == nil && strings.EqualFold(c.Email, other.Email):
		c.EmailVerified = other.EmailVerified
	}
	return c
}

// claims reads the ID token, and the user info endpoint for claims that the token lacks: in the code flow the claims of a scope come
// from that endpoint (OpenID Connect Core, section 5.4).
func (p *provider) claims(ctx context.Context, tokens *oauth2.Token, idToken *oidc.IDToken) (claims, error) {
	var fromToken claims
	if err := idToken.Claims(&fromToken); err != nil {
		return claims{}, err
	}
	if fromToken.complete() || p.UserInfoEndpoint() == "" {
		return fromToken, nil
	}
	info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return claims{}, err
	}
	if info.Subject != idToken.Subject {
		return claims{}, errors.New("the user info is about somebody else")
	}
	var fromUserInfo claims
	if err := info.Claims(&fromUserInfo); err != nil {
		return claims{}, err
	}
	return fromToken.with(fromUserInfo), nil
}

// confirms reads how and when the provider authenticated the person. Without ACRValues neither is asked for, and the sign-in counts by its
// own time. With them a session without an auth_time is as old as one can be, as the maximum age was asked for and not met (OpenID Connect
// Core, section 3.1.2.1).
func (o *OIDC) confirms(idToken *oidc.IDToken) (func(*account.Session), error) {
	if o.config.ACRValues == "" {
		return func(*account.Session) {}, nil
	}
	var authentication struct {
		ACR  string  `json:"acr"`
		Time float64 `json:"auth_time"`
	}
	if err := idToken.Claims(&authentication); err != nil {
		return nil, err
	}
	return func(session *account.Session) {
		if at := time.Unix(int64(authentication.Time), 0).UTC(); at.Before(session.ConfirmedAt) {
			session.ConfirmedAt = at
		}
		if slices.Contains(strings.Fields(o.config.ACRValues), authentication.ACR) {
			session.Factor = account.FactorProvider
		}
	}, nil
}

// account makes the person's account. Without a usable verified address it gets one under .invalid.
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
