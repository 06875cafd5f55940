package webhooks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
	"intents.internal/pkg/network"
)

type webhookRow struct {
	bun.BaseModel `bun:"table:webhooks,alias:webhooks"`

	ID             uuid.UUID           `bun:"id,pk"`
	AccountID      uuid.UUID           `bun:"account_id"`
	Environment    network.Environment `bun:"environment"`
	URL            string              `bun:"url"`
	Types          []string            `bun:"types,array"`
	Description    string              `bun:"description"`
	Enabled        bool                `bun:"enabled"`
	DisabledReason Reason              `bun:"disabled_reason,nullzero"`
	Cursor         int64               `bun:"cursor"`
	Secret         []byte              `bun:"secret"`
	PreviousSecret []byte              `bun:"previous_secret,nullzero"`
	PreviousUntil  *time.Time          `bun:"previous_until"`
	FailingSince   *time.Time          `bun:"failing_since"`
	Failures       int                 `bun:"failures"`
	LastFailedAt   *time.Time          `bun:"last_failed_at"`
	PacedUntil     *time.Time          `bun:"paced_until"`
	CreatedAt      time.Time           `bun:"created_at"`
	UpdatedAt      time.Time           `bun:"updated_at"`
}

func (r *webhookRow) endpoint() *Endpoint {
	return &Endpoint{
		ID: r.ID, AccountID: r.AccountID, Environment: r.Environment, URL: r.URL, Types: r.Types, Description: r.Description,
		Enabled: r.Enabled, DisabledReason: r.DisabledReason,
		Secrets:   SealedSecrets{Current: r.Secret, Previous: r.PreviousSecret, PreviousUntil: postgres.UTC(r.PreviousUntil)},
		Health:    Health{FailingSince: postgres.UTC(r.FailingSince), Failures: r.Failures, LastFailedAt: postgres.UTC(r.LastFailedAt)},
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
}

func newWebhookRow(e *Endpoint) webhookRow {
	return webhookRow{
		ID: e.ID, AccountID: e.AccountID, Environment: e.Environment, URL: e.URL, Types: e.Types, Description: e.Description,
		Enabled: e.Enabled, DisabledReason: e.DisabledReason, Secret: e.Secrets.Current, PreviousSecret: e.Secrets.Previous,
		PreviousUntil: e.Secrets.PreviousUntil, FailingSince: e.FailingSince, Failures: e.Failures, LastFailedAt: e.LastFailedAt,
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
	}
}

// ofOwner restricts a query of webhooks to an owner's; an empty environment means both.
func ofOwner[Query interface{ Where(string, ...any) Query }](query Query, owner feed.Owner) Query {
	query = query.Where("webhooks.account_id = ?", owner.AccountID)
	if owner.Environment != "" {
		query = query.Where("webhooks.environment = ?", owner.Environment)
	}
	return query
}

// InsertWebhook stores a new endpoint, which receives events from now on. formToken is the SHA-256 of the one-time token of the
// form, zero for no form. It returns ErrTooMany if the account has MaxEndpoints of them, ErrTooManyCreations if it
// has created too many of late, and account.ErrFormUsed if the form was already used.
func (s *Store) InsertWebhook(
	ctx context.Context, grant access.Grant, e *Endpoint, entry account.AuditEntry, formToken [32]byte,
) error {
	if formToken == [32]byte{} { // a form that was used says so, also where there is no room
		if err := checkRoom(ctx, s.db, e.AccountID); err != nil {
			return err
		}
	}
	end, err := s.feedEnd(ctx, grant.Turn(e.AccountID))
	if err != nil {
		return err
	}
	return s.InTx(ctx, grant.Turn(e.AccountID), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, tx.access, e.AccountID); err != nil {
			return err
		}
		if err := tx.access.UseFormToken(ctx, formToken, e.CreatedAt); err != nil {
			return err
		}
		if err := tx.access.LockAccount(ctx, e.AccountID); err != nil {
			return err
		}
		return tx.insertWebhook(ctx, e, end, entry)
	})
}

// insertWebhook stores a new endpoint, which receives events after a position of the feed, under the lock of its account.
func (tx Tx) insertWebhook(ctx context.Context, e *Endpoint, position int64, entry account.AuditEntry) error {
	if err := checkRoom(ctx, tx.db, e.AccountID); err != nil {
		return err
	}
	if err := tx.takeQuota(ctx, creations, e.AccountID, e.CreatedAt); err != nil {
		return err
	}
	row := newWebhookRow(e)
	row.Cursor = position
	if _, err := tx.db.NewInsert().Model(&row).Exec(ctx); err != nil {
		return fmt.Errorf("insert webhook %s: %w", e.ID, err)
	}
	return tx.access.Audit(ctx, entry.OfWebhook(e.ID, e.Describe()))
}

// checkRoom returns ErrTooMany if an account has MaxEndpoints endpoints. It is conclusive under the lock of the account;
// before, it refuses without a wait.
func checkRoom(ctx context.Context, db bun.IDB, accountID uuid.UUID) error {
	count, err := db.NewSelect().Model((*webhookRow)(nil)).Where("account_id = ?", accountID).Count(ctx)
	if err != nil {
		return fmt.Errorf("count the webhooks of account %s: %w", accountID, err)
	}
	if count >= MaxEndpoints {
		return ErrTooMany
	}
	return nil
}

// feedEnd is a position at or above those of all events that were committed before. It waits for other rounds in a turn.
func (s *Store) feedEnd(ctx context.Context, turn postgres.Turn) (int64, error) {
	for {
		round, err := s.feed.AssignPositionsIn(ctx, turn, true, true)
		if err != nil {
			return 0, err
		}
		if !round.More {
			return s.feed.LatestPosition(ctx)
		}
	}
}

// Webhooks lists an owner's endpoints, newest first.
func (s *Store) Webhooks(ctx context.Context, owner feed.Owner) ([]*Endpoint, error) {
	var rows []webhookRow
	if err := ofOwner(s.db.NewSelect().Model(&rows), owner).Order("id DESC").Scan(ctx); err != nil {
		return nil, fmt.Errorf("list the webhooks of account %s: %w", owner.AccountID, err)
	}
	endpoints := make([]*Endpoint, len(rows))
	for n := range rows {
		endpoints[n] = rows[n].endpoint()
	}
	return endpoints, nil
}

// AnyWebhook reports whether any account has an enabled endpoint.
func (s *Store) AnyWebhook(ctx context.Context) (enabled bool, err error) {
	if err := s.db.NewRaw("SELECT EXISTS (SELECT FROM webhooks WHERE enabled)").Scan(ctx, &enabled); err != nil {
		return false, fmt.Errorf("look for an enabled webhook: %w", err)
	}
	return enabled, nil
}

// Webhook finds one of an owner's endpoints, or returns ErrNotFound.
func (s *Store) Webhook(ctx context.Context, owner feed.Owner, id uuid.UUID) (*Endpoint, error) {
	row, err := findWebhook(ctx, s.db.NewSelect(), owner, id)
	if err != nil {
		return nil, err
	}
	return row.endpoint(), nil
}

func findWebhook(ctx context.Context, query *bun.SelectQuery, owner feed.Owner, id uuid.UUID) (*webhookRow, error) {
	var row webhookRow
	err := ofOwner(query.Model(&row), owner).Where("id = ?", id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find webhook %s: %w", id, err)
	}
	return &row, nil
}

// enabledWebhook finds one of an owner's endpoints; it returns ErrDisabled for one that is disabled.
func enabledWebhook(ctx context.Context, query *bun.SelectQuery, owner feed.Owner, id uuid.UUID) (*webhookRow, error) {
	row, err := findWebhook(ctx, query, owner, id)
	if err == nil && !row.Enabled {
		return nil, ErrDisabled
	}
	return row, err
}

// ChangeWebhook locks one of an owner's endpoints, applies Rules.Change or Rotate to it and stores it. change returns the
// detail of the audit entry, whose notice it may set. It returns ErrNotFound, or the error of change; then,
// and for an empty detail, nothing is changed and no entry is written.
func (s *Store) ChangeWebhook(
	ctx context.Context, grant access.Grant, owner feed.Owner, id uuid.UUID, entry *account.AuditEntry,
	change func(*Endpoint) (detail string, err error),
) (e *Endpoint, err error) {
	err = s.InTx(ctx, grant.Turn(owner.AccountID), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, tx.access, owner.AccountID); err != nil {
			return err
		}
		row, err := findWebhook(ctx, tx.db.NewSelect().For("NO KEY UPDATE"), owner, id)
		if err != nil {
			return err
		}
		e = row.endpoint()
		detail, err := change(e)
		if err != nil || detail == "" {
			return err
		}
		if err := tx.updateWebhook(ctx, e); err != nil {
			return err
		}
		return tx.access.Audit(ctx, entry.OfWebhook(id, detail))
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (tx Tx) updateWebhook(ctx context.Context, e *Endpoint) error {
	row := newWebhookRow(e)
	_, err := tx.db.NewUpdate().Model(&row).WherePK().Column("url", "types", "description", "enabled", "disabled_reason", "secret", "previous_secret",
		"previous_until", "failing_since", "failures", "last_failed_at", "updated_at").Exec(ctx)
	if err != nil {
		return fmt.Errorf("update webhook %s: %w", e.ID, err)
	}
	return nil
}

// DeleteWebhook removes one of an owner's endpoints and what was queued for it: no new attempt starts. Its other deliveries are pruned
// later. It returns ErrNotFound for an endpoint that the owner does not have.
func (s *Store) DeleteWebhook(ctx context.Context, grant access.Grant, owner feed.Owner, id uuid.UUID, entry account.AuditEntry) error {
	return s.InTx(ctx, grant.Turn(owner.AccountID), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, tx.access, owner.AccountID); err != nil {
			return err
		}
		row, err := findWebhook(ctx, tx.db.NewSelect().For("UPDATE"), owner, id)
		if err != nil {
			return err
		}
		if _, err := tx.db.NewDelete().Model(row).WherePK().Exec(ctx); err != nil {
			return fmt.Errorf("delete webhook %s: %w", id, err)
		}
		return tx.access.Audit(ctx, entry.OfWebhook(id, row.endpoint().Describe()))
	})
}

// ReplayWebhook redelivers to one of an owner's endpoints every event after a position of the feed that matches its filter. It
// returns ErrNotFound, ErrDisabled, ErrFeedCursorExpired if the events after a position have been removed, or
// ErrTooManyReplays.
func (s *Store) ReplayWebhook(
	ctx context.Context, grant access.Grant, owner feed.Owner, id uuid.UUID, position int64, entry account.AuditEntry,
) error {
	return s.InTx(ctx, grant.Turn(owner.AccountID), func(ctx context.Context, tx Tx) error {
		if err := grant.Check(ctx, tx.access, owner.AccountID); err != nil {
			return err
		}
		row, err := enabledWebhook(ctx, tx.db.NewSelect().For("NO KEY UPDATE"), owner, id)
		if err != nil {
			return err
		}
		var pruned int64
		if err := tx.db.NewRaw(feed.PrunedTo, owner.AccountID, row.Environment).Scan(ctx, &pruned); err != nil {
			return fmt.Errorf("read what was removed of the feed of account %s: %w", owner.AccountID, err)
		}
		if position < pruned {
			return feed.ErrCursorExpired
		}
		if err := tx.takeQuota(ctx, replays, owner.AccountID, entry.OccurredAt); err != nil {
			return err
		}
		_, err = tx.db.NewUpdate().Model(row).WherePK().Set("cursor = least(cursor, ?)", position).Set("updated_at = ?", entry.OccurredAt).Exec(ctx)
		if err != nil {
			return fmt.Errorf("move the cursor of webhook %s: %w", id, err)
		}
		return tx.access.Audit(ctx, entry.OfWebhook(id, fmt.Sprintf("events after position %d", position)))
	})
}

// quota is what an account may do some times at once and then once each interval.
type quota struct {
	// column of webhook_quotas has when what was done so far would end at one each interval.
	column   string
	burst    int
	interval time.Duration
	// exceeded is the error where nothing is left.
	exceeded error
}

var (
	creations = quota{"creations_until", CreationBurst, CreationInterval, ErrTooManyCreations}
	replays   = quota{"replays_until", ReplayBurst, ReplayInterval, ErrTooManyReplays}
)

// takeQuota takes one from an account's quota (the generic cell rate algorithm), or returns the quota's error.
func (tx Tx) takeQuota(ctx context.Context, of quota, accountID uuid.UUID, now time.Time) error {
	var taken bool
	err := tx.db.NewRaw(`INSERT INTO webhook_quotas AS q (account_id, ?4) VALUES (?0, ?1::timestamptz + ?2 * interval '1 second')
		ON CONFLICT (account_id) DO UPDATE SET ?4 = greatest(q.?4, ?1) + ?2 * interval '1 second'
		WHERE greatest(q.?4, ?1) + ?2 * interval '1 second' <= ?1::timestamptz + ?3 * interval '1 second' RETURNING true`,
		accountID, now, of.interval.Seconds(), float64(of.burst)*of.interval.Seconds(), bun.Ident(of.column)).Scan(ctx, &taken)
	if errors.Is(err, sql.ErrNoRows) {
		return of.exceeded
	}
	if err != nil {
		return fmt.Errorf("take from %s of account %s: %w", of.column, accountID, err)
	}
	return nil
}

// resealBatch is how many endpoints ResealWebhooks reads at once.
const resealBatch = 500

// ResealWebhooks seals every secret under the sealer's current key that is sealed under the previous one. It returns how many endpoints
// it changed.
func (s *Store) ResealWebhooks(ctx context.Context, sealer *Sealer) (changed int, err error) {
	for after := uuid.Nil; ; {
		var rows []webhookRow
		err := s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
			if err := tx.db.NewSelect().Model(&rows).Where("id > ?", after).Order("id").Limit(resealBatch).For("NO KEY UPDATE").Scan(ctx); err != nil {
				return err
			}
			for n := range rows {
				e := rows[n].endpoint()
				resealed, err := sealer.Reseal(e)
				if err != nil {
					return fmt.Errorf("webhook %s: %w", e.ID, err)
				}
				if !resealed {
					continue
				}
				if err := tx.updateWebhook(ctx, e); err != nil {
					return err
				}
				changed++
			}
			return nil
		})
		if err != nil {
			return changed, fmt.Errorf("seal the secrets of webhooks again: %w", err)
		}
		if len(rows) < resealBatch {
			return changed, nil
		}
		after = rows[len(rows)-1].ID
	}
}
