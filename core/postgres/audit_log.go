package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/account"
)

type auditRow struct {
	bun.BaseModel `bun:"table:audit_log,alias:audit_log"`

	ID         uuid.UUID      `bun:"id,pk"`
	AccountID  uuid.UUID      `bun:"account_id"`
	OccurredAt time.Time      `bun:"occurred_at"`
	Actor      string         `bun:"actor"`
	Action     account.Action `bun:"action"`
	KeyID      *uuid.UUID     `bun:"key_id"`
	KeyName    string         `bun:"key_name"`
	Detail     string         `bun:"detail"`
	IPAddress  string         `bun:"ip_address"`
	UserAgent  string         `bun:"user_agent"`
}

const operator = "operator"

// Audit writes an entry about what the transaction does.
func (tx Tx) Audit(ctx context.Context, e account.AuditEntry) error {
	row := auditRow{
		ID: e.ID, AccountID: e.AccountID, OccurredAt: e.OccurredAt, Actor: "owner", Action: e.Action,
		KeyID: e.KeyID, KeyName: e.KeyName, Detail: e.Detail, IPAddress: e.Actor.IPAddress, UserAgent: e.Actor.UserAgent,
	}
	if e.Actor.Operator {
		row.Actor = operator
	}
	if _, err := tx.db.NewInsert().Model(&row).Exec(ctx); err != nil {
		return fmt.Errorf("write %s to the audit log of account %s: %w", e.Action, e.AccountID, err)
	}
	return nil
}

// AuditLog reads at most limit entries of an account, newest first, that are older than the entry before. uuid.Nil starts with the
// newest.
func (s *Store) AuditLog(ctx context.Context, accountID, before uuid.UUID, limit int) ([]account.AuditEntry, error) {
	var rows []auditRow
	query := s.db.NewSelect().Model(&rows).Where("account_id = ?", accountID).Order("id DESC").Limit(int64(limit))
	if before != uuid.Nil {
		query.Where("id < ?", before)
	}
	if err := query.Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the audit log of account %s: %w", accountID, err)
	}
	entries := make([]account.AuditEntry, len(rows))
	for i, r := range rows {
		entries[i] = account.AuditEntry{
			ID: r.ID, AccountID: r.AccountID, OccurredAt: r.OccurredAt.UTC(), Action: r.Action,
			Actor: account.Actor{Operator: r.Actor == operator, IPAddress: r.IPAddress, UserAgent: r.UserAgent},
			KeyID: r.KeyID, KeyName: r.KeyName, Detail: r.Detail,
		}
	}
	return entries, nil
}
