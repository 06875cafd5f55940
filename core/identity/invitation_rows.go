package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

type invitationRow struct {
	bun.BaseModel `bun:"table:invitations,alias:invitations"`

	ID        uuid.UUID    `bun:"id,pk"`
	AccountID uuid.UUID    `bun:"account_id"`
	InviterID uuid.UUID    `bun:"inviter_id"`
	Email     string       `bun:"email"`
	Role      account.Role `bun:"role"`
	Mailed    bool         `bun:"mailed"`
	ExpiresAt time.Time    `bun:"expires_at"`
	CreatedAt time.Time    `bun:"created_at"`

	Account *accountRow `bun:"rel:belongs-to,join:account_id=id"`
	Inviter *accountRow `bun:"rel:belongs-to,join:inviter_id=id"`
}

func (r invitationRow) invitation() *account.Invitation {
	return &account.Invitation{
		ID: r.ID, AccountID: r.AccountID, InviterID: r.InviterID, Email: r.Email, Role: r.Role, Mailed: r.Mailed,
		ExpiresAt: r.ExpiresAt.UTC(), CreatedAt: r.CreatedAt.UTC(), AccountName: r.Account.Name, InviterEmail: r.Inviter.Email,
	}
}

// Invitations lists the open invitations to an account, newest first.
func (s *Store) Invitations(ctx context.Context, accountID uuid.UUID, now time.Time) ([]*account.Invitation, error) {
	return invitations(ctx, s.db, accountID, now)
}

// Invitations is Store.Invitations in a transaction.
func (tx Tx) Invitations(ctx context.Context, accountID uuid.UUID, now time.Time) ([]*account.Invitation, error) {
	return invitations(ctx, tx.db, accountID, now)
}

func invitations(ctx context.Context, db bun.IDB, accountID uuid.UUID, now time.Time) ([]*account.Invitation, error) {
	var rows []invitationRow
	err := db.NewSelect().Model(&rows).Relation("Account").Relation("Inviter").
		Where("invitations.account_id = ? AND invitations.expires_at > ?", accountID, now).Order("invitations.id DESC").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the invitations of account %s: %w", accountID, err)
	}
	open := make([]*account.Invitation, len(rows))
	for i, r := range rows {
		open[i] = r.invitation()
	}
	return open, nil
}

// ReplaceInvitation stores an invitation in place of an earlier one of the same address. tokenHash is the hash of the link's
// token, nil for a mailed link.
func (tx Tx) ReplaceInvitation(ctx context.Context, by access.Rights, i *account.Invitation, tokenHash *[32]byte) error {
	if err := by.Cover(tx.Tx, i.AccountID); err != nil {
		return err
	}
	if _, err := tx.db.NewRaw("DELETE FROM invitations WHERE account_id = ? AND email = ?", i.AccountID, i.Email).Exec(ctx); err != nil {
		return fmt.Errorf("replace an invitation to account %s: %w", i.AccountID, err)
	}
	row := invitationRow{
		ID: i.ID, AccountID: i.AccountID, InviterID: i.InviterID, Email: i.Email, Role: i.Role, Mailed: i.Mailed,
		ExpiresAt: i.ExpiresAt, CreatedAt: i.CreatedAt,
	}
	insert := tx.db.NewInsert().Model(&row).Returning("NULL")
	if tokenHash != nil {
		insert.Value("token_hash", "$1").Conn(postgres.Bind(tx.db.Tx, tokenHash[:]))
	}
	if _, err := insert.Exec(ctx); err != nil {
		return fmt.Errorf("insert an invitation to account %s: %w", i.AccountID, err)
	}
	return nil
}

// InvitationByToken finds the open invitation of a link, or returns account.ErrNoInvitation.
func (s *Store) InvitationByToken(ctx context.Context, tokenHash [32]byte, now time.Time) (*account.Invitation, error) {
	var row invitationRow
	err := s.db.NewSelect().Model(&row).Relation("Account").Relation("Inviter").
		Where("invitations.token_hash = $1 AND invitations.expires_at > ?", now).
		Where(usable).Conn(postgres.Bind(s.db.Pool(), tokenHash[:])).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNoInvitation
	}
	if err != nil {
		return nil, fmt.Errorf("find an invitation: %w", err)
	}
	return row.invitation(), nil
}

// UseInvitation removes an open invitation, or returns account.ErrNoInvitation for one that is gone. tokenHash is the hash of the
// link's token.
func (tx Tx) UseInvitation(ctx context.Context, by access.Rights, id uuid.UUID, tokenHash [32]byte, now time.Time) error {
	if err := by.Cover(tx.Tx); err != nil {
		return err
	}
	used, err := postgres.RowsChanged(tx.db.NewRaw("DELETE FROM invitations WHERE id = ? AND token_hash = $1 AND expires_at > ?", id, now).
		Conn(postgres.Bind(tx.db.Tx, tokenHash[:])).Exec(ctx))
	if err == nil && used == 0 {
		return account.ErrNoInvitation
	}
	if err != nil {
		return fmt.Errorf("use invitation %s: %w", id, err)
	}
	return nil
}

// InvitationByID finds an invitation, or returns account.ErrNoInvitation.
func (s *Store) InvitationByID(ctx context.Context, id uuid.UUID, now time.Time) (*account.Invitation, error) {
	var row invitationRow
	err := s.db.NewSelect().Model(&row).Relation("Account").Relation("Inviter").
		Where("invitations.id = ? AND invitations.expires_at > ?", id, now).Where(usable).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, account.ErrNoInvitation
	}
	if err != nil {
		return nil, fmt.Errorf("find invitation %s: %w", id, err)
	}
	return row.invitation(), nil
}

// DeleteInvitation ends an invitation to an account, or returns account.ErrNoInvitation.
func (tx Tx) DeleteInvitation(ctx context.Context, by access.Rights, accountID, id uuid.UUID) error {
	if err := by.Cover(tx.Tx, accountID); err != nil {
		return err
	}
	ended, err := postgres.RowsChanged(tx.db.NewRaw("DELETE FROM invitations WHERE id = ? AND account_id = ?", id, accountID).Exec(ctx))
	if err == nil && ended == 0 {
		return account.ErrNoInvitation
	}
	if err != nil {
		return fmt.Errorf("end invitation %s: %w", id, err)
	}
	return nil
}

// SetInvitationToken gives an open invitation the token of the link that is about to be mailed; an earlier one stops working. It returns
// account.ErrNoInvitation for an invitation that is gone.
func (s *Store) SetInvitationToken(ctx context.Context, id uuid.UUID, tokenHash [32]byte, now time.Time) error {
	set, err := postgres.RowsChanged(s.db.NewRaw("UPDATE invitations SET token_hash = $1 WHERE id = ? AND mailed AND expires_at > ?", id, now).
		Conn(postgres.Bind(s.db.Pool(), tokenHash[:])).Exec(ctx))
	if err == nil && set == 0 {
		return account.ErrNoInvitation
	}
	if err != nil {
		return fmt.Errorf("set the token of invitation %s: %w", id, err)
	}
	return nil
}

// endInvitationsBy removes the open invitations that a member made.
func (tx Tx) endInvitationsBy(ctx context.Context, m account.Member) error {
	if _, err := tx.db.NewRaw("DELETE FROM invitations WHERE account_id = ? AND inviter_id = ?", m.AccountID, m.PersonID).Exec(ctx); err != nil {
		return fmt.Errorf("end the invitations of a member of account %s: %w", m.AccountID, err)
	}
	return nil
}

// endAllInvitationsBy removes the open invitations that a person made, to any account.
func (tx Tx) endAllInvitationsBy(ctx context.Context, person uuid.UUID) error {
	if _, err := tx.db.NewRaw("DELETE FROM invitations WHERE inviter_id = ?", person).Exec(ctx); err != nil {
		return fmt.Errorf("end the invitations of person %s: %w", person, err)
	}
	return nil
}
