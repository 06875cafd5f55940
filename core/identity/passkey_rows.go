package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
	"intents.internal/pkg/network"
)

type passkeyRow struct {
	bun.BaseModel `bun:"table:passkeys,alias:passkeys"`

	ID             uuid.UUID  `bun:"id,pk"`
	PersonID       uuid.UUID  `bun:"person_id"`
	CredentialID   []byte     `bun:"credential_id"`
	PublicKey      []byte     `bun:"public_key"`
	SignCount      int64      `bun:"sign_count"`
	BackupEligible bool       `bun:"backup_eligible"`
	BackedUp       bool       `bun:"backed_up"`
	Transports     string     `bun:"transports"`
	AAGUID         uuid.UUID  `bun:"aaguid"`
	Name           string     `bun:"name"`
	CreatedAt      time.Time  `bun:"created_at"`
	UsedAt         *time.Time `bun:"used_at"`
}

func (r passkeyRow) passkey() *account.Passkey {
	return &account.Passkey{
		ID: r.ID, PersonID: r.PersonID, CredentialID: r.CredentialID, PublicKey: r.PublicKey,
		SignCount:      uint32(r.SignCount), //nolint:gosec // it was stored from a uint32
		BackupEligible: r.BackupEligible, BackedUp: r.BackedUp, Transports: strings.FieldsFunc(r.Transports, func(c rune) bool { return c == ',' }),
		AAGUID: r.AAGUID, Name: r.Name, CreatedAt: r.CreatedAt.UTC(), UsedAt: postgres.UTC(r.UsedAt),
	}
}

// Passkeys lists the passkeys of a person, oldest first.
func (s *Store) Passkeys(ctx context.Context, person uuid.UUID) ([]*account.Passkey, error) {
	return passkeys(ctx, s.db, person)
}

// Passkeys is Store.Passkeys in the transaction.
func (tx Tx) Passkeys(ctx context.Context, person uuid.UUID) ([]*account.Passkey, error) {
	return passkeys(ctx, tx.db, person)
}

func passkeys(ctx context.Context, db bun.IDB, person uuid.UUID) ([]*account.Passkey, error) {
	var rows []passkeyRow
	if err := db.NewSelect().Model(&rows).Where("person_id = ?", person).Order("id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("list the passkeys of account %s: %w", person, err)
	}
	found := make([]*account.Passkey, len(rows))
	for n, row := range rows {
		found[n] = row.passkey()
	}
	return found, nil
}

// PasskeyOwner is a person with what verifies a passkey.
type PasskeyOwner struct {
	Account *account.Account
	Handle  []byte
	Passkey *account.Passkey
}

// PasskeyByCredential finds the passkey of a credential id and its person, who may be disabled. It returns account.ErrNoPasskey.
func (s *Store) PasskeyByCredential(ctx context.Context, credentialID []byte) (*PasskeyOwner, error) {
	var row passkeyRow
	err := s.db.NewSelect().Model(&row).Where("credential_id = ?", credentialID).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNoPasskey
	}
	if err != nil {
		return nil, fmt.Errorf("find a passkey: %w", err)
	}
	var person struct {
		accountRow
		Handle []byte `bun:"webauthn_handle"`
	}
	err = s.db.NewRaw("SELECT "+personColumns+" FROM accounts WHERE id = ? AND deleted_at IS NULL", row.PersonID).Scan(ctx, &person)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNoPasskey
	}
	if err != nil {
		return nil, fmt.Errorf("find the person of passkey %s: %w", row.ID, err)
	}
	return &PasskeyOwner{Account: person.account(), Handle: person.Handle, Passkey: row.passkey()}, nil
}

// personColumns are those of accountRow and the user handle.
const personColumns = `id, name, email, password_hash, shared, limit_requests, limit_period_seconds, email_verified_at, verification_required,
	disabled_at, deleted_at, created_at, updated_at, webauthn_handle`

// PasskeyHandle returns the user handle of the person of the rights, which becomes fresh if there is none.
func (tx Tx) PasskeyHandle(ctx context.Context, by access.Rights, fresh []byte) (handle []byte, err error) {
	if err := by.Cover(tx.Tx, by.Person.ID); err != nil {
		return nil, err
	}
	err = tx.db.NewRaw("UPDATE accounts SET webauthn_handle = coalesce(webauthn_handle, ?) WHERE id = ? RETURNING webauthn_handle", fresh, by.Person.ID).
		Scan(ctx, &handle)
	if err != nil {
		return nil, fmt.Errorf("read the user handle of account %s: %w", by.Person.ID, err)
	}
	return handle, nil
}

// InsertPasskey stores a passkey of the person of the rights, whose session it confirms. The first one ends the person's other sessions. It
// returns account.ErrTooManyPasskeys, and account.ErrPasskeyRegistered for a credential id that is known.
func (tx Tx) InsertPasskey(ctx context.Context, by access.Rights, p *account.Passkey, entry account.AuditEntry) error {
	if err := by.Cover(tx.Tx, p.PersonID); err != nil {
		return err
	}
	had, err := tx.db.NewSelect().Model((*passkeyRow)(nil)).Where("person_id = ?", p.PersonID).Count(ctx)
	if err != nil {
		return fmt.Errorf("count the passkeys of account %s: %w", p.PersonID, err)
	}
	if had >= account.MaxPasskeys {
		return account.ErrTooManyPasskeys
	}
	row := passkeyRow{
		ID: p.ID, PersonID: p.PersonID, CredentialID: p.CredentialID, PublicKey: p.PublicKey, SignCount: int64(p.SignCount),
		BackupEligible: p.BackupEligible, BackedUp: p.BackedUp, Transports: strings.Join(p.Transports, ","), AAGUID: p.AAGUID, Name: p.Name,
		CreatedAt: p.CreatedAt,
	}
	inserted, err := postgres.RowsChanged(tx.db.NewInsert().Model(&row).On("CONFLICT (credential_id) DO NOTHING").Exec(ctx))
	if err != nil {
		return fmt.Errorf("insert a passkey of account %s: %w", p.PersonID, err)
	}
	if inserted == 0 {
		return account.ErrPasskeyRegistered
	}
	if had == 0 {
		_, err := tx.db.NewDelete().Model((*sessionRow)(nil)).Where("account_id = ? AND id <> ?", p.PersonID, by.Session.ID).Exec(ctx)
		if err != nil {
			return fmt.Errorf("end the other sessions of account %s: %w", p.PersonID, err)
		}
	}
	if err := tx.ConfirmSession(ctx, by, account.FactorPasskey, p.CreatedAt); err != nil {
		return err
	}
	return tx.Audit(ctx, entry)
}

// ConfirmSession records that a factor has confirmed the session of the rights.
func (tx Tx) ConfirmSession(ctx context.Context, by access.Rights, factor account.Factor, now time.Time) error {
	if err := by.Cover(tx.Tx, by.Person.ID); err != nil {
		return err
	}
	_, err := tx.db.NewRaw("UPDATE sessions SET confirmed_at = ?, factor = ? WHERE id = ?", now, factor, by.Session.ID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("confirm session %s: %w", by.Session.ID, err)
	}
	return nil
}

// UsePasskey records a use of a passkey, whose person's row is locked, and reports whether its sign count allows it: a count that the
// authenticator keeps must rise (WebAuthn level 3, section 7.2, step 22). It returns account.ErrNoPasskey for one that is gone.
func (tx Tx) UsePasskey(ctx context.Context, id uuid.UUID, signCount uint32, backedUp bool, now time.Time) (allowed bool, err error) {
	var stored int64
	err = tx.db.NewRaw("SELECT sign_count FROM passkeys WHERE id = ? FOR UPDATE", id).Scan(ctx, &stored)
	if errors.Is(err, sql.ErrNoRows) {
		return false, account.ErrNoPasskey
	}
	if err != nil {
		return false, fmt.Errorf("lock passkey %s: %w", id, err)
	}
	if (stored > 0 || signCount > 0) && int64(signCount) <= stored {
		return false, nil
	}
	_, err = tx.db.NewRaw("UPDATE passkeys SET sign_count = ?, backed_up = ?, used_at = ? WHERE id = ?", signCount, backedUp, now, id).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("record a use of passkey %s: %w", id, err)
	}
	return true, nil
}

// RenamePasskey renames a passkey of the person of the rights. It returns account.ErrNoPasskey for one that the person does not have.
func (tx Tx) RenamePasskey(ctx context.Context, by access.Rights, id uuid.UUID, name string) (*account.Passkey, error) {
	if err := by.Cover(tx.Tx, by.Person.ID); err != nil {
		return nil, err
	}
	var row passkeyRow
	err := tx.db.NewRaw("UPDATE passkeys SET name = ? WHERE id = ? AND person_id = ? RETURNING *", name, id, by.Person.ID).Scan(ctx, &row)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNoPasskey
	}
	if err != nil {
		return nil, fmt.Errorf("rename passkey %s: %w", id, err)
	}
	return row.passkey(), nil
}

// DeletePasskey removes a passkey of the person of the rights. It returns account.ErrNoPasskey for one that the person does not have.
func (tx Tx) DeletePasskey(ctx context.Context, by access.Rights, id uuid.UUID, entry account.AuditEntry) error {
	if err := by.Cover(tx.Tx, by.Person.ID); err != nil {
		return err
	}
	deleted, err := postgres.RowsChanged(tx.db.NewDelete().Model((*passkeyRow)(nil)).Where("id = ? AND person_id = ?", id, by.Person.ID).Exec(ctx))
	if err != nil {
		return fmt.Errorf("delete passkey %s: %w", id, err)
	}
	if deleted == 0 {
		return account.ErrNoPasskey
	}
	return tx.Audit(ctx, entry)
}

// OwnsLiveKeys reports whether a person is an owner of an account that has a live key, the own one too.
func (tx Tx) OwnsLiveKeys(ctx context.Context, person uuid.UUID) (owns bool, err error) {
	err = tx.db.NewRaw(`SELECT EXISTS (SELECT FROM members JOIN api_keys ON api_keys.account_id = members.account_id
		WHERE members.person_id = ? AND members.role = ? AND api_keys.environment = ? AND api_keys.deleted_at IS NULL)`,
		person, account.RoleOwner, network.Live).Scan(ctx, &owns)
	if err != nil {
		return false, fmt.Errorf("look for live keys of account %s: %w", person, err)
	}
	return owns, nil
}

// RemovePasskeys removes all passkeys of the person with an address and ends the person's sessions, links and invitations. It returns their
// number, and account.ErrNotFound for an address without a person.
func (s *Store) RemovePasskeys(
	ctx context.Context, email string, notice account.Notice, actor account.Actor, now time.Time,
) (removed int64, err error) {
	err = s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
		var person uuid.UUID
		err := tx.db.NewRaw("SELECT id FROM accounts WHERE email = ? AND NOT shared AND deleted_at IS NULL FOR UPDATE", email).Scan(ctx, &person)
		if errors.Is(err, sql.ErrNoRows) {
			return account.ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("lock an account (%s): %w", account.PasskeysRemoved, err)
		}
		removed, err = postgres.RowsChanged(tx.db.NewDelete().Model((*passkeyRow)(nil)).Where("person_id = ?", person).Exec(ctx))
		if err != nil {
			return fmt.Errorf("remove the passkeys of account %s: %w", person, err)
		}
		if err := tx.endAccess(ctx, person); err != nil {
			return err
		}
		entry, err := account.NewAuditEntry(person, actor, account.PasskeysRemoved, now)
		if err != nil {
			return err
		}
		entry.Detail, entry.Notice = fmt.Sprintf("%d; all sessions ended", removed), notice
		return tx.Audit(ctx, entry)
	})
	return removed, err
}

// RefusedPasskey writes the entry about a passkey whose sign count fell.
func (s *Store) RefusedPasskey(ctx context.Context, entry account.AuditEntry) error {
	return s.InTx(ctx, postgres.TurnOf(entry.AccountID), func(ctx context.Context, tx Tx) error { return tx.Audit(ctx, entry) })
}
