package identity

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
)

// Change is a write of a session. Everything that a session route writes is written with the rights of a change, which are read in the
// transaction that writes; and what needs confirmation is decided there, by the effect.
type Change struct {
	service   *base
	client    Client
	principal *Principal
	// password is set once the request's password was right, which confirms nothing of a person with a passkey.
	password bool
	// confirmed is set if an earlier request of the session was confirmed.
	confirmed bool
	// rights are those of the present transaction.
	rights access.Rights
}

// Change begins a write of a session, with the browser that sends the request.
func (s *base) Change(client Client, p *Principal) *Change {
	return &Change{service: s, client: client, principal: p}
}

// errUnconfirmed ends a transaction whose effect the request's password may confirm. It is checked outside, because that takes longer
// than a lock may be held.
var errUnconfirmed = errors.New("the password is not checked yet")

// Run calls write, and once more after the request's password was found right if it turns out to be needed. Write begins a transaction
// with a grant of the change. Notices are sent after it.
func (c *Change) Run(ctx context.Context, write func() error) error {
	err := write()
	if errors.Is(err, errUnconfirmed) {
		if err := c.checkPassword(ctx, c.client.Password); err != nil {
			return err
		}
		err = write()
	}
	if err == nil {
		c.service.noticesQueued()
	}
	return err
}

// write is run in a transaction of the store of identities, with the rights of the session on an account, which must allow need. The
// further accounts are locked too.
func (c *Change) write(
	ctx context.Context, on uuid.UUID, need Need, do func(context.Context, Tx) error, further ...uuid.UUID,
) error {
	grant := c.Grant(on, need, further...)
	return c.Run(ctx, func() error {
		return c.service.Store.InTx(ctx, grant.Turn(), func(ctx context.Context, tx Tx) error {
			if _, err := grant.Rights(ctx, tx.Tx); err != nil {
				return err
			}
			return do(ctx, tx)
		})
	})
}

// Grant reads the rights of the session on an account: ErrSignedOut if it has ended, account.ErrNotMember, or ErrRole.
func (c *Change) Grant(on uuid.UUID, need Need, further ...uuid.UUID) access.Grant {
	return access.NewGrant(func(ctx context.Context, tx access.Tx) (rights access.Rights, err error) {
		c.rights, err = Within(tx.Bun()).Rights(ctx, c.principal.Session, on, func(role account.Role) error {
			return (&Principal{Role: role}).Check(need)
		}, further...)
		return c.rights, err
	}, append([]uuid.UUID{on, c.principal.Session.AccountID}, further...)...)
}

// GrantEffect is Grant with the decision on an effect that does not depend on what is stored.
func (c *Change) GrantEffect(on uuid.UUID, need Need, e Effect) access.Grant {
	grant := c.Grant(on, need)
	rights := grant.Rights
	grant.Rights = func(ctx context.Context, tx access.Tx) (access.Rights, error) {
		r, err := rights(ctx, tx)
		if err == nil {
			_, err = c.Allow(e)
		}
		return r, err
	}
	return grant
}

// Grant reads the rights of a person in the transaction of a write that has no effect on what principals may do. It returns
// ErrSignedOut, account.ErrNotMember and ErrRole.
func (s *base) Grant(p *Principal, need Need) access.Grant {
	return s.Change(Client{}, p).Grant(p.Account.ID, need)
}

// Allow decides on an effect under the lock, and returns who is told of it: somebody who finds a browser left open gives nothing to
// anybody, and takes nothing away. It returns what Confirm returns.
func (c *Change) Allow(e Effect) (account.Notice, error) {
	if e == NoEffect {
		return "", nil
	}
	if err := c.decide(e, c.rights.Session); err != nil {
		return "", err
	}
	return c.Notice(e), nil
}

// Notice is who is told of an effect: nobody where no mail is sent.
func (c *Change) Notice(e Effect) account.Notice { return c.service.notice(tells[e]) }

// decide returns nil if a session may have an effect, errUnconfirmed if the request's password may confirm it, and otherwise what the person
// lacks.
func (c *Change) decide(e Effect, session *account.Session) error {
	if c.service.SecondFactor && needsSecondFactor[e] && !session.HasPasskey && session.Factor != account.FactorProvider {
		return ErrSecondFactor
	}
	if c.confirmed || c.password && !session.HasPasskey || c.service.fresh(session) {
		return nil
	}
	if err := c.needed(session); err != nil {
		return err
	}
	return errUnconfirmed
}

// Confirm decides on an effect that is known before the transaction, so that a refused request takes nothing from a limit. It returns
// ErrPasskeyNeeded, ErrPasswordNeeded or ErrSignInNeeded in an old session, ErrSecondFactor, ErrPassword, ErrBusy, and a *LimitedError.
func (c *Change) Confirm(ctx context.Context, e Effect) error {
	if e == NoEffect {
		return nil
	}
	err := c.decide(e, c.principal.Session)
	if errors.Is(err, errUnconfirmed) {
		return c.checkPassword(ctx, c.client.Password)
	}
	return err
}

// needed returns what the person can do to confirm an effect, nil if the request has a password to check.
func (c *Change) needed(session *account.Session) error {
	switch {
	case session.HasPasskey:
		return ErrPasskeyNeeded
	case c.principal.Person.PasswordHash == "":
		return ErrSignInNeeded
	case c.client.Password == "":
		return ErrPasswordNeeded
	default:
		return nil
	}
}

// checkPassword returns ErrPassword for a password that is not the person's. Attempts are limited.
func (c *Change) checkPassword(ctx context.Context, password string) error {
	s, p := c.service, c.principal
	// The limit is the session's, so that attempts of others do not count.
	if err := s.limitDevice(ctx, c.client, "session:"+p.Session.ID.String()); err != nil {
		return err
	}
	matches, err := s.matches(ctx, password, p.Person.PasswordHash)
	if err != nil {
		return err
	}
	if !matches {
		return ErrPassword
	}
	c.password = true
	return nil
}

// fresh reports whether a session was confirmed recently enough for an effect. That of a person with a passkey counts by a second factor
// alone.
func (s *base) fresh(session *account.Session) bool {
	if session.HasPasskey && !session.Factor.IsSecond() {
		return false
	}
	return s.Store.Now().Sub(session.LastConfirmedAt()) <= maxFreshAge
}

// Confirm confirms the session of a person without a passkey by the client's password, for what later requests of the session do. It
// returns ErrPasskeyNeeded, ErrSignInNeeded, ErrPassword, ErrBusy or a *LimitedError.
func (s *Sessions) Confirm(ctx context.Context, client Client, p *Principal) error {
	c := s.Change(client, p)
	switch err := c.needed(p.Session); {
	case errors.Is(err, ErrPasswordNeeded):
		return ErrPassword
	case err != nil:
		return err
	}
	if err := c.checkPassword(ctx, client.Password); err != nil {
		return err
	}
	return c.write(ctx, p.Person.ID, Person, func(ctx context.Context, tx Tx) error {
		if c.rights.Session.HasPasskey {
			return ErrPasskeyNeeded
		}
		return tx.ConfirmSession(ctx, c.rights, account.FactorPassword, s.Store.Now())
	})
}

// ConfirmationOf returns what a person would be asked for now to confirm an effect: nil in a fresh session, otherwise ErrPasskeyNeeded,
// ErrPasswordNeeded or ErrSignInNeeded.
func (s *Sessions) ConfirmationOf(p *Principal) error {
	if s.fresh(p.Session) {
		return nil
	}
	return s.Change(Client{}, p).needed(p.Session)
}
