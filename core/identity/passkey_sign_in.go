package identity

import (
	"context"
	"errors"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

// Authentication is a sign-in or a confirmation that a browser has begun. Cookie is for Cookie.BeginCeremony.
type Authentication struct {
	Options protocol.PublicKeyCredentialRequestOptions
	Cookie  string
}

// StartAuthentication begins a sign-in with a passkey, or the confirmation of a session, whose options name the person's passkeys. p is nil
// for nobody: then the options are the same whoever has passkeys. It returns ErrPasskeysOff or a *LimitedError.
func (s *Persons) StartAuthentication(ctx context.Context, client Client, p *Principal) (*Authentication, error) {
	if !s.PasskeysOn() {
		return nil, ErrPasskeysOff
	}
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	assertion, _, err := s.relyingParty.BeginDiscoverableLogin()
	if err != nil {
		return nil, err
	}
	challenge := Challenge{Text: assertion.Response.Challenge.String()}
	if p != nil {
		known, err := s.Store.Passkeys(ctx, p.Person.ID)
		if err != nil {
			return nil, err
		}
		challenge.PersonID = p.Person.ID
		assertion.Response.AllowedCredentials = webauthn.Credentials(credentialsOf(known)).CredentialDescriptors()
	}
	cookie, hash := newChallenge()
	if err := s.Store.InsertChallenge(ctx, hash, challenge, s.Store.Now().Add(ChallengeLifetime)); err != nil {
		return nil, err
	}
	return &Authentication{Options: assertion.Response, Cookie: cookie}, nil
}

// FinishAuthentication signs in the person of a passkey that answered the challenge of a cookie. If that person is signed in as p it
// confirms that session instead, and SignedIn.Token is the client's. It returns ErrPasskeysOff, ErrChallenge, ErrUnknownPasskey,
// ErrAuthentication, ErrAccountDisabled or a *LimitedError.
func (s *Persons) FinishAuthentication(ctx context.Context, client Client, p *Principal, cookie string, response []byte) (*SignedIn, error) {
	in, err := s.finishAuthentication(ctx, client, p, cookie, response)
	s.passkeys.count(ceremonyAuthentication, err)
	return in, err
}

func (s *Persons) finishAuthentication(ctx context.Context, client Client, p *Principal, cookie string, response []byte) (*SignedIn, error) {
	if !s.PasskeysOn() {
		return nil, ErrPasskeysOff
	}
	if err := s.limits.signInPerIP.take(ctx, client.network()); err != nil {
		return nil, err
	}
	challenge, err := s.takeChallenge(ctx, cookie)
	if err != nil {
		return nil, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return nil, refusedBy(ErrAuthentication, err)
	}
	owner, err := s.Store.PasskeyByCredential(ctx, parsed.RawID)
	if errors.Is(err, account.ErrNoPasskey) {
		return nil, ErrUnknownPasskey
	}
	if err != nil {
		return nil, err
	}
	use, err := s.verifyAuthentication(challenge, owner, parsed)
	if errors.Is(err, errSignCount) {
		return nil, s.refuseSignCount(ctx, client, owner, err)
	}
	if err != nil {
		return nil, err
	}
	if p != nil && p.Person.ID == owner.Account.ID {
		err = s.confirmByPasskey(ctx, client, p, use)
		if errors.Is(err, errSignCount) {
			return nil, s.refuseSignCount(ctx, client, owner, err)
		}
		return &SignedIn{Account: p.Person, Session: p.Session, Token: client.Token}, err
	}
	in, err := s.startPasskeySession(ctx, client, owner.Account, use)
	switch {
	case errors.Is(err, errSignCount):
		return nil, s.refuseSignCount(ctx, client, owner, err)
	case errors.Is(err, account.ErrNoPasskey): // it was deleted meanwhile
		return nil, ErrUnknownPasskey
	case errors.Is(err, ErrCredentials):
		return nil, ErrAccountDisabled
	case err != nil:
		return nil, err
	}
	return in, nil
}

// errSignCount means that a passkey's sign count fell, as that of a copy does.
var errSignCount = errors.New("the sign count fell")

// passkeyUse is a proven use of a passkey.
type passkeyUse struct {
	id        uuid.UUID
	signCount uint32
	backedUp  bool
}

// verifyAuthentication returns the use that a response proves, ErrAuthentication, or errSignCount.
func (s *Persons) verifyAuthentication(
	challenge Challenge, owner *PasskeyOwner, parsed *protocol.ParsedCredentialAssertionData,
) (passkeyUse, error) {
	if challenge.PersonID != uuid.Nil && challenge.PersonID != owner.Account.ID {
		return passkeyUse{}, refusedBy(ErrAuthentication, errors.New("the passkey is another person's"))
	}
	user := passkeyUser{handle: owner.Handle, credentials: []webauthn.Credential{credentialOf(owner.Passkey)}}
	_, credential, err := s.relyingParty.ValidatePasskeyLogin(
		func([]byte, []byte) (webauthn.User, error) { return user, nil }, s.ceremony(challenge), parsed)
	if err != nil {
		return passkeyUse{}, refusedBy(ErrAuthentication, err)
	}
	if credential.Authenticator.CloneWarning {
		return passkeyUse{}, errSignCount
	}
	return passkeyUse{owner.Passkey.ID, credential.Authenticator.SignCount, credential.Flags.BackupState}, nil
}

// refuseSignCount tells the person of a passkey whose sign count fell, and returns ErrAuthentication.
func (s *Persons) refuseSignCount(ctx context.Context, client Client, owner *PasskeyOwner, cause error) error {
	entry := s.entry(client, owner.Account.ID, account.PasskeyRefused, owner.Passkey.Name)
	entry.Notice = s.notice(account.NoticeToPerson)
	if err := s.Store.RefusedPasskey(ctx, entry); err != nil {
		return err
	}
	s.noticesQueued()
	return refusedBy(ErrAuthentication, cause)
}

// confirmByPasskey confirms the session of a person who has shown a passkey.
func (s *Persons) confirmByPasskey(ctx context.Context, client Client, p *Principal, use passkeyUse) error {
	c := s.Change(client, p)
	return c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) error {
		now := s.Store.Now()
		if err := s.usePasskey(ctx, tx, use); err != nil {
			return err
		}
		return tx.ConfirmSession(ctx, c.rights, account.FactorPasskey, now)
	})
}

// startPasskeySession signs in the person of a passkey.
func (s *Persons) startPasskeySession(ctx context.Context, client Client, owner *account.Account, use passkeyUse) (*SignedIn, error) {
	insert := func(ctx context.Context, session *account.Session, owner *account.Account, entry account.AuditEntry) error {
		session.Factor = account.FactorPasskey
		return s.Store.InTx(ctx, postgres.TurnOf(owner.ID), func(ctx context.Context, tx Tx) error {
			if err := tx.StartSession(ctx, session, owner, entry); err != nil {
				return err
			}
			return s.usePasskey(ctx, tx, use)
		})
	}
	return s.startSession(ctx, client, owner, "with a passkey", insert)
}

// usePasskey records the use in the transaction that confirms by it, so that one of several uses of a count succeeds.
func (s *Persons) usePasskey(ctx context.Context, tx Tx, use passkeyUse) error {
	allowed, err := tx.UsePasskey(ctx, use.id, use.signCount, use.backedUp, s.Store.Now())
	if err == nil && !allowed {
		err = errSignCount
	}
	return err
}
