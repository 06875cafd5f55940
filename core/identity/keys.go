package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/apikey"
)

// Keys are the operations on API keys: who may, what a person must confirm, how many requests they may make, and which pages' origins
// use them. It is safe for concurrent use.
type Keys struct{ *base }

// Create creates a key of the account and returns its text, which is not stored. A live key needs a fresh session or the
// client's password. It returns an *account.InvalidError, ErrSessionNotFresh, ErrPassword, ErrBusy, account.ErrTooMany,
// account.ErrFormUsed or a *LimitedError; a form whose key is not stored can be sent again.
func (s *Keys) Create(ctx context.Context, client Client, p *Principal, r account.KeyRequest) (*account.Key, apikey.Key, error) {
	now, owner := s.Store.Now(), p.Account.ID
	key, text, err := account.NewKey(owner, r, now)
	if err != nil {
		return nil, apikey.Key{}, err
	}
	c := s.Change(client, p)
	if err := c.Confirm(ctx, keyEffect(nil, key)); err != nil {
		return nil, apikey.Key{}, err
	}
	if r.FormToken == [32]byte{} { // a form that was used says so, also where there is no room
		if err := s.Store.CheckKeyRoom(ctx, owner); err != nil {
			return nil, apikey.Key{}, err
		}
	}
	if err := s.limit(ctx, client, owner); err != nil {
		return nil, apikey.Key{}, err
	}
	entry := s.entry(client, owner, account.KeyCreated, "")
	err = c.write(ctx, owner, Develop, func(ctx context.Context, tx Tx) (err error) {
		if entry.Notice, err = c.Allow(keyEffect(nil, key)); err != nil {
			return err
		}
		if err := tx.UseFormToken(ctx, r.FormToken, now); err != nil {
			return err
		}
		if err := tx.InsertKey(ctx, c.rights, key); err != nil {
			return err
		}
		return tx.Audit(ctx, entry.OfKey(key, key.Describe()))
	})
	if err != nil {
		return nil, apikey.Key{}, err
	}
	return key, text, nil
}

// Update renames, enables or disables a key or sets its expiry, scopes or networks. A live key that may do more than before needs a
// fresh session or the client's password. It returns what account.Key.Change returns, the errors of a confirmation, and account.ErrNotFound for a key the account does not have.
func (s *Keys) Update(ctx context.Context, client Client, p *Principal, keyID uuid.UUID, k account.KeyChange) (*account.Key, error) {
	now, owner := s.Store.Now(), p.Account.ID
	entry := s.entry(client, owner, account.KeyUpdated, "")
	c := s.Change(client, p)
	var key *account.Key
	err := c.write(ctx, owner, Develop, func(ctx context.Context, tx Tx) (err error) {
		if key, err = tx.LockKey(ctx, owner, keyID); err != nil {
			return err
		}
		before := *key
		detail, err := key.Change(k, now)
		if err != nil || detail == "" { // no change, no entry
			return err
		}
		if entry.Notice, err = c.Allow(keyEffect(&before, key)); err != nil {
			return err
		}
		if err := tx.UpdateKey(ctx, c.rights, key); err != nil {
			return err
		}
		return tx.Audit(ctx, entry.OfKey(key, detail))
	})
	if err != nil {
		return nil, err
	}
	return key, nil
}

// Rotate creates a key that replaces another, and returns its text, which is not stored. The old key stays valid for the grace
// period of account.ParseGracePeriod. It returns account.ErrKeyExpired, account.ErrKeyRotated, account.ErrNotFound, and for the new
// key what Create returns.
func (s *Keys) Rotate(ctx context.Context, client Client, p *Principal, keyID uuid.UUID, grace time.Duration) (*account.Key, apikey.Key, error) {
	now, owner := s.Store.Now(), p.Account.ID
	if err := s.limit(ctx, client, owner); err != nil {
		return nil, apikey.Key{}, err
	}
	entry := s.entry(client, owner, account.KeyRotated, "")
	c := s.Change(client, p)
	var next *account.Key
	var text apikey.Key
	err := c.write(ctx, owner, Develop, func(ctx context.Context, tx Tx) error {
		old, err := tx.LockKey(ctx, owner, keyID)
		if err != nil {
			return err
		}
		if next, text, err = old.Rotate(grace, now); err != nil {
			return err
		}
		if entry.Notice, err = c.Allow(keyEffect(nil, next)); err != nil {
			return err
		}
		if err := tx.ReplaceKey(ctx, c.rights, old, next); err != nil {
			return err
		}
		return tx.Audit(ctx, entry.OfKey(old, rotation(old, next)))
	})
	if err != nil {
		return nil, apikey.Key{}, err
	}
	return next, text, nil
}

// rotation describes a rotation for the audit log.
func rotation(k, next *account.Key) string {
	if k.RotatedAt == nil {
		return fmt.Sprintf("%s… takes its place at once", next.Start)
	}
	return fmt.Sprintf("%s… takes its place, it works until %s", next.Start, k.ExpiresAt.UTC().Format(time.RFC3339))
}

// Delete deletes a key. It returns account.ErrNotFound for a key the account does not have.
func (s *Keys) Delete(ctx context.Context, client Client, p *Principal, keyID uuid.UUID) error {
	now, owner := s.Store.Now(), p.Account.ID
	entry := s.entry(client, owner, account.KeyDeleted, "")
	c := s.Change(client, p)
	return c.write(ctx, owner, Develop, func(ctx context.Context, tx Tx) error {
		key, err := tx.LockKey(ctx, owner, keyID)
		if err != nil {
			return err
		}
		if err := tx.DeleteKey(ctx, c.rights, key, now); err != nil {
			return err
		}
		return tx.Audit(ctx, entry.OfKey(key, ""))
	})
}

// limit counts a new key for the account and for the address.
func (s *Keys) limit(ctx context.Context, client Client, owner uuid.UUID) error {
	if err := s.limits.keysPerAccount.take(ctx, owner.String()); err != nil {
		return err
	}
	return s.limits.keysPerIP.take(ctx, client.network())
}
