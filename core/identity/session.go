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

// Fresh reports whether a session is new enough to replace the confirmation by password.
func (s *Service) Fresh(session *account.Session) bool {
	return s.Store.Now().Sub(session.CreatedAt) <= maxFreshAge
}

// SignOut ends the client's session; an empty or unknown token is no error.
func (s *Service) SignOut(ctx context.Context, client Client) error {
	if client.Token == "" {
		return nil
	}
	return s.Store.DeleteSession(ctx, account.HashToken(client.Token), func(person uuid.UUID) account.AuditEntry {
		by := client.Actor()
		by.PersonID = person
		return account.NewHourlyEntry(person.String(), by, account.SignedOut, s.Store.Now())
	})
}

// Session finds the live session of a token and its account, or returns ErrSignedOut.
func (s *Service) Session(ctx context.Context, token string) (*account.Session, *account.Account, error) {
	if token == "" {
		return nil, nil, ErrSignedOut
	}
	session, owner, err := s.Store.Session(ctx, account.HashToken(token), s.Store.Now())
	if errors.Is(err, account.ErrNotFound) {
		return nil, nil, ErrSignedOut
	}
	return session, owner, err
}

// Sessions lists an account's live sessions, newest first.
func (s *Service) Sessions(ctx context.Context, owner uuid.UUID) ([]*account.Session, error) {
	return s.Store.Sessions(ctx, owner, s.Store.Now())
}

// RevokeSession ends one session of an account. It returns account.ErrNotFound for a session the account does not have.
func (s *Service) RevokeSession(ctx context.Context, client Client, owner, sessionID uuid.UUID) error {
	return s.Store.DeleteSessionByID(ctx, owner, sessionID, s.entry(client, owner, account.SessionsRevoked, "one session"))
}

// RevokeOtherSessions ends all sessions of an account except this one and returns their number.
func (s *Service) RevokeOtherSessions(ctx context.Context, client Client, session *account.Session) (int, error) {
	entry := s.entry(client, session.AccountID, account.SessionsRevoked, "all other sessions")
	return s.Store.DeleteSessionsExcept(ctx, session.AccountID, session.ID, entry)
}

// RevokeSessions ends all sessions of an account and returns their number.
func (s *Service) RevokeSessions(ctx context.Context, client Client, owner uuid.UUID) (int, error) {
	return s.Store.DeleteSessionsExcept(ctx, owner, uuid.Nil, s.entry(client, owner, account.SessionsRevoked, "all sessions"))
}

// DeleteAccount permanently ends the account of a person: its sessions end, its keys are rejected, its intents are kept for
// audit. The client's password confirms it, otherwise ErrPassword; an account without a password needs a session of the last ten minutes,
// otherwise ErrSessionNotFresh. It is limited like a sign-in, so it may return ErrBusy and a *LimitedError.
func (s *Service) DeleteAccount(ctx context.Context, client Client, p *Principal) error {
	if p.Person.PasswordHash == "" {
		if !s.Fresh(p.Session) {
			return ErrSessionNotFresh
		}
	} else if err := s.checkPassword(ctx, client, p, client.Password); err != nil {
		return err
	}
	err := s.Store.DeleteAccountByID(ctx, p.Person.ID, client.Actor(), s.Store.Now())
	if errors.Is(err, account.ErrNotFound) { // it has ended since it was found
		return ErrSignedOut
	}
	return err
}

// confirm returns ErrSessionNotFresh unless the session is fresh or the request has the person's password, which it then checks:
// somebody who finds a browser left open cannot do what cannot be taken back.
func (s *Service) confirm(ctx context.Context, client Client, p *Principal) error {
	if s.Fresh(p.Session) {
		return nil
	}
	if p.Person.PasswordHash == "" || client.Password == "" {
		return ErrSessionNotFresh
	}
	return s.checkPassword(ctx, client, p, client.Password)
}

// checkPassword returns ErrPassword for a password that is not the person's. Attempts are limited.
func (s *Service) checkPassword(ctx context.Context, client Client, p *Principal, password string) error {
	// The limit is the session's, so that attempts of others do not count.
	if err := s.limitDevice(ctx, client, "session:"+p.Session.ID.String()); err != nil {
		return err
	}
	matches, err := s.matches(ctx, password, p.Person.PasswordHash)
	if err != nil {
		return err
	}
	if !matches {
		return ErrPassword
	}
	return nil
}
