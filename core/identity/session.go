package identity

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// maxFreshAge is the maximum age of a session that replaces the confirmation by password.
const maxFreshAge = 10 * time.Minute

// SignOut ends the client's session; an empty or unknown token is no error.
func (s *Sessions) SignOut(ctx context.Context, client Client) error {
	if client.Token == "" {
		return nil
	}
	return s.Store.DeleteSession(ctx, account.HashToken(client.Token), func(person uuid.UUID) account.AuditEntry {
		by := client.Actor()
		by.PersonID = person
		return account.NewHourlyEntry(person, person.String(), by, account.SignedOut, s.Store.Now())
	})
}

// Get finds the live session of a token and its account, or returns ErrSignedOut.
func (s *Sessions) Get(ctx context.Context, token string) (*account.Session, *account.Account, error) {
	if token == "" {
		return nil, nil, ErrSignedOut
	}
	session, owner, err := s.Store.Session(ctx, account.HashToken(token), s.Store.Now())
	if errors.Is(err, account.ErrNotFound) {
		return nil, nil, ErrSignedOut
	}
	return session, owner, err
}

// List lists an account's live sessions, newest first.
func (s *Sessions) List(ctx context.Context, owner uuid.UUID) ([]*account.Session, error) {
	return s.Store.Sessions(ctx, owner, s.Store.Now())
}

// Revoke ends one session of a person. It returns account.ErrNotFound for a session the person does not have.
func (s *Sessions) Revoke(ctx context.Context, client Client, p *Principal, sessionID uuid.UUID) error {
	person := p.Person.ID
	entry := s.entry(client, person, account.SessionsRevoked, "one session")
	c := s.Change(client, p)
	return c.write(ctx, person, Person, func(ctx context.Context, tx Tx) error {
		return tx.DeleteSessionByID(ctx, c.rights, person, sessionID, entry)
	})
}

// RevokeOthers ends all sessions of a person except the one that asks for it, and returns their number.
func (s *Sessions) RevokeOthers(ctx context.Context, client Client, p *Principal) (int, error) {
	return s.revokeAll(ctx, client, p, p.Session.ID, "all other sessions")
}

// RevokeAll ends all sessions of a person and returns their number.
func (s *Sessions) RevokeAll(ctx context.Context, client Client, p *Principal) (int, error) {
	return s.revokeAll(ctx, client, p, uuid.Nil, "all sessions")
}

func (s *Sessions) revokeAll(ctx context.Context, client Client, p *Principal, keep uuid.UUID, which string) (ended int, err error) {
	person := p.Person.ID
	entry := s.entry(client, person, account.SessionsRevoked, which)
	c := s.Change(client, p)
	err = c.write(ctx, person, Person, func(ctx context.Context, tx Tx) (err error) {
		ended, err = tx.DeleteSessionsExcept(ctx, c.rights, person, keep, entry)
		return err
	})
	return ended, err
}

// DeleteAccount permanently ends the account of a person: its sessions end, its keys are rejected, its intents are kept for
// audit. The client's password confirms it, otherwise ErrPassword; a person with a passkey, and an account without a password, need a fresh
// session, otherwise ErrPasskeyNeeded or ErrSignInNeeded. It is limited like a sign-in, so it may return ErrBusy and a *LimitedError.
func (s *Persons) DeleteAccount(ctx context.Context, client Client, p *Principal) error {
	c := s.Change(client, p)
	if p.Person.PasswordHash != "" && (!p.Session.HasPasskey || client.Password != "") {
		if err := c.checkPassword(ctx, client.Password); err != nil {
			return err
		}
	}
	grant := c.GrantEffect(p.Person.ID, Person, endsAccount)
	err := c.Run(ctx, func() error {
		return s.Store.DeleteAccountByID(ctx, grant, p.Person.ID, s.notice(tells[endsAccount]), client.Actor(), s.Store.Now())
	})
	if errors.Is(err, account.ErrNotFound) { // it has ended since it was found
		return ErrSignedOut
	}
	return err
}
