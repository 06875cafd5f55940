package identity

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/screening"
)

// Identities lists the identities of an account, oldest first.
func (s *Persons) Identities(ctx context.Context, owner uuid.UUID) ([]account.LinkedIdentity, error) {
	return s.Store.Identities(ctx, owner)
}

// LinkWallet links the wallet that signed a message for this site to the account of a person, as another way to sign in. The
// session must be fresh, or the client's password must confirm it. It returns the errors of SignInWithEthereum and of FinishLink, and
// those of a confirmation.
func (s *Persons) LinkWallet(ctx context.Context, client Client, p *Principal, message, signature string) (account.Identity, error) {
	c := s.Change(client, p)
	if err := c.Confirm(ctx, changesSignIn); err != nil {
		return account.Identity{}, err
	}
	identity, err := s.provenWallet(ctx, client, message, signature)
	if err != nil {
		return account.Identity{}, s.Screening.Refused(ctx, screening.About{Stage: screening.AtSignIn, AccountID: p.Person.ID}, err)
	}
	return identity, c.linkIdentity(ctx, identity)
}

// StartLink is StartOIDC for a flow that ends with a link to the account of a person. The session must be fresh, or the client's
// password must confirm it: it may also return the errors of a confirmation.
func (s *Persons) StartLink(ctx context.Context, client Client, p *Principal) (redirectURL, opaque string, err error) {
	if err := s.Change(client, p).Confirm(ctx, changesSignIn); err != nil {
		return "", "", err
	}
	f, redirectURL, err := s.startFlow(ctx, client)
	if err != nil {
		return "", "", err
	}
	f.link = f.sessionMAC(client.Token)
	return redirectURL, f.String(), nil
}

// LinksAccount reports whether a flow ends with a link, so that FinishLink must finish it instead of FinishOIDC.
func LinksAccount(opaque string) bool {
	f, ok := parseFlow(opaque)
	return ok && f.link != ""
}

// FinishLink links the person whom the provider authenticated to the account of the session that started the flow. It returns
// ErrFlowExpired in any other session, ErrSignedOut if the session has ended, account.ErrIdentityTaken for a person with another account,
// account.ErrTooManyIdentities, and the errors of FinishOIDC but account.ErrEmailTaken and those of sign-up.
func (s *Persons) FinishLink(ctx context.Context, client Client, opaque, state, code string) error {
	f, ok := parseFlow(opaque)
	if !ok || !hmac.Equal([]byte(f.link), []byte(f.sessionMAC(client.Token))) {
		return ErrFlowExpired
	}
	session, person, err := s.sessions.Get(ctx, client.Token)
	if err != nil {
		return err
	}
	found, err := s.finishFlow(ctx, client, f, state, code)
	if err != nil {
		return err
	}
	c := s.Change(client, &Principal{Session: session, Person: person})
	c.confirmed = true // StartLink has asked for it, for the lifetime of the flow
	return c.linkIdentity(ctx, found.identity)
}

// sessionMAC binds a flow to the session with this token. It cannot be computed without the token, so that no site can plant a
// flow that links its own identity to a client's account.
func (f flow) sessionMAC(token string) string {
	f.link = ""
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("link an identity " + f.String()))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (c *Change) linkIdentity(ctx context.Context, identity account.Identity) error {
	person := c.principal.Person.ID
	entry := c.service.entry(c.client, person, account.IdentityLinked, identity.String())
	return c.write(ctx, person, Person, func(ctx context.Context, tx Tx) (err error) {
		if entry.Notice, err = c.Allow(changesSignIn); err != nil {
			return err
		}
		return tx.LinkIdentity(ctx, c.rights, identity, entry)
	})
}

// UnlinkPassword removes the password of a person who has a passkey, and ends the person's other sessions. It needs a fresh session. It
// returns account.ErrIdentityNotFound for a person without a password, account.ErrLastWayIn for one without a passkey, and the errors of
// a confirmation.
func (s *Persons) UnlinkPassword(ctx context.Context, client Client, p *Principal) error {
	entry := s.entry(client, p.Person.ID, account.IdentityUnlinked, "the password; all other sessions ended")
	c := s.Change(client, p)
	return c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) (err error) {
		switch {
		case c.rights.Person.PasswordHash == "":
			return account.ErrIdentityNotFound
		case !c.rights.Session.HasPasskey || !s.PasskeysOn():
			return account.ErrLastWayIn
		}
		if entry.Notice, err = c.Allow(changesSignIn); err != nil {
			return err
		}
		return tx.RemovePassword(ctx, c.rights, entry)
	})
}

// Unlink removes a way to sign in from the account of a person, and ends its other sessions. The session must be fresh, or the
// client's password must confirm it. It returns account.ErrIdentityNotFound, account.ErrLastWayIn for the last way to sign in, and the
// errors of a confirmation.
func (s *Persons) Unlink(ctx context.Context, client Client, p *Principal, identity account.Identity) error {
	entry := s.entry(client, p.Person.ID, account.IdentityUnlinked, identity.String()+"; all other sessions ended")
	c := s.Change(client, p)
	return c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) (err error) {
		if entry.Notice, err = c.Allow(changesSignIn); err != nil {
			return err
		}
		return tx.UnlinkIdentity(ctx, c.rights, identity, s.issuers(), s.PasskeysOn() && c.rights.Session.HasPasskey, entry)
	})
}

// issuers returns the issuers of identities that can sign in with the operator's configuration.
func (s *base) issuers() []string {
	issuers := []string{account.WalletIssuer}
	if s.OIDC != nil {
		issuers = append(issuers, s.OIDC.config.Issuer)
	}
	if s.Chains != nil {
		for _, chain := range s.Chains.Chains() {
			issuers = append(issuers, chain.ID().String())
		}
	}
	return issuers
}

// CanSignIn reports whether an identity can sign in with the operator's configuration.
func (s *Persons) CanSignIn(identity account.Identity) bool {
	return slices.Contains(s.issuers(), identity.Issuer)
}
