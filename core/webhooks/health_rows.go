package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/feed"
	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
	"intents.internal/core/postgres"
)

// disabledMailEvery is the shortest time between two mails to the owners that an endpoint was disabled: one that is enabled and
// disabled again and again sends no mail each time.
const disabledMailEvery = time.Hour

// endpointHealth are the endpoints of a batch of results as they are stored.
type endpointHealth struct {
	// locked are the rows, locked by this transaction, of those whose health the results may change.
	locked map[uuid.UUID]*Endpoint
	// busy are those that another transaction has locked.
	busy map[uuid.UUID]bool
}

// lockHealth locks the rows of endpoints whose health the results may change: those with a failure, and those with a success that
// are failing. It waits for no lock. Rows are locked in the order of their ids and before those of deliveries, which prevents
// deadlocks.
func (tx Tx) lockHealth(ctx context.Context, records []AttemptRecord) (h endpointHealth, err error) {
	all, failed := []uuid.UUID{}, []uuid.UUID{uuid.Nil} // an IN list has at least one element
	for _, r := range records {
		all = append(all, r.Endpoint.ID)
		if r.Attempt.Outcome != Succeeded {
			failed = append(failed, r.Endpoint.ID)
		}
	}
	var concerned []uuid.UUID
	err = tx.db.NewRaw("SELECT id FROM webhooks WHERE id IN (?) AND (id IN (?) OR failing_since IS NOT NULL)", bun.List(all), bun.List(failed)).
		Scan(ctx, &concerned)
	if err != nil {
		return h, fmt.Errorf("read the health of %d webhooks: %w", len(records), err)
	}
	h.locked, h.busy = make(map[uuid.UUID]*Endpoint, len(concerned)), map[uuid.UUID]bool{}
	if len(concerned) == 0 {
		return h, nil
	}
	var rows []webhookRow
	if err := tx.db.NewSelect().Model(&rows).Where("id IN (?)", bun.List(concerned)).Order("id").For("NO KEY UPDATE SKIP LOCKED").Scan(ctx); err != nil {
		return h, fmt.Errorf("lock %d webhooks: %w", len(concerned), err)
	}
	for n := range rows {
		h.locked[rows[n].ID] = rows[n].endpoint()
	}
	for _, id := range concerned {
		h.busy[id] = h.locked[id] == nil
	}
	return h, nil
}

// counts reports whether a result counts. A failure does not if its endpoint has meanwhile been disabled, deleted or given another
// URL: the delivery stays due.
func (h endpointHealth) counts(r AttemptRecord) bool {
	if r.Attempt.Outcome == Succeeded || r.Attempt.Outcome == EventGone {
		return true
	}
	e := h.locked[r.Endpoint.ID]
	return e != nil && e.Enabled && e.URL == r.Endpoint.URL
}

// recordHealth applies results, which are recorded, to the health of their endpoints. It returns why it disabled some of them, for which it
// writes the event and, with mails, those to the owners.
func (tx Tx) recordHealth(ctx context.Context, h endpointHealth, records []AttemptRecord, mails bool) (disabled []Reason, err error) {
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b AttemptRecord) int { return a.Attempt.EndedAt.Compare(b.Attempt.EndedAt) })
	changed, reasons := map[uuid.UUID]bool{}, map[uuid.UUID]Reason{}
	for _, r := range records {
		e := h.locked[r.Endpoint.ID]
		if e == nil || !e.Enabled || e.URL != r.Endpoint.URL || r.Attempt.Outcome == EventGone {
			continue
		}
		changed[e.ID] = true
		if reason := e.RecordAttempt(r.Attempt); reason != "" {
			reasons[e.ID] = reason
		}
	}
	if err := tx.updateHealth(ctx, h, changed); err != nil {
		return nil, err
	}
	for id, reason := range reasons {
		if err := tx.webhookDisabled(ctx, h.locked[id], mails); err != nil {
			return nil, err
		}
		disabled = append(disabled, reason)
	}
	return disabled, nil
}

func (tx Tx) updateHealth(ctx context.Context, h endpointHealth, changed map[uuid.UUID]bool) error {
	type healthRow struct {
		ID             uuid.UUID  `bun:"id,type:uuid"`
		Enabled        bool       `bun:"enabled,type:boolean"`
		DisabledReason Reason     `bun:"disabled_reason,type:text,nullzero"`
		FailingSince   *time.Time `bun:"failing_since,type:timestamptz"`
		Failures       int        `bun:"failures,type:integer"`
		LastFailedAt   *time.Time `bun:"last_failed_at,type:timestamptz"`
		UpdatedAt      time.Time  `bun:"updated_at,type:timestamptz"`
	}
	if len(changed) == 0 {
		return nil
	}
	rows := make([]healthRow, 0, len(changed))
	for id := range changed {
		e := h.locked[id]
		rows = append(rows, healthRow{e.ID, e.Enabled, e.DisabledReason, e.FailingSince, e.Failures, e.LastFailedAt, e.UpdatedAt})
	}
	slices.SortFunc(rows, func(a, b healthRow) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	_, err := tx.db.NewRaw(`WITH health (id, enabled, disabled_reason, failing_since, failures, last_failed_at, updated_at) AS (?)
		UPDATE webhooks SET enabled = health.enabled, disabled_reason = health.disabled_reason, failing_since = health.failing_since,
			failures = health.failures, last_failed_at = health.last_failed_at, updated_at = health.updated_at
		FROM health WHERE webhooks.id = health.id`, tx.db.NewValues(&rows)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write the health of %d webhooks: %w", len(rows), err)
	}
	return nil
}

// webhookDisabled writes the event that attempts have disabled an endpoint, and with mails those to the owners of its account.
func (tx Tx) webhookDisabled(ctx context.Context, e *Endpoint, mails bool) error {
	data := DisabledData{ID: e.ID, URL: e.URL, Reason: e.DisabledReason}
	if err := tx.AppendEvent(e.Owner(), feed.TypeWebhookDisabled, e.UpdatedAt, data); err != nil {
		return err
	}
	if !mails {
		return nil
	}
	due, err := postgres.RowsChanged(tx.db.NewRaw(`UPDATE webhooks SET disabled_mailed_at = ?0
		WHERE id = ?1 AND (disabled_mailed_at IS NULL OR disabled_mailed_at <= ?2)`, e.UpdatedAt, e.ID, e.UpdatedAt.Add(-disabledMailEvery)).Exec(ctx))
	if err != nil || due == 0 {
		return err
	}
	var recipients []string
	err = tx.db.NewRaw(`SELECT person.email FROM members JOIN accounts AS person ON person.id = members.person_id
		WHERE members.account_id = ? AND members.role = ? AND person.disabled_at IS NULL AND person.deleted_at IS NULL
			AND (person.email_verified_at IS NOT NULL OR NOT person.verification_required) AND person.email NOT LIKE '%.invalid' ORDER BY person.id`, e.AccountID, account.RoleOwner).
		Scan(ctx, &recipients)
	if err != nil {
		return fmt.Errorf("find the owners of account %s: %w", e.AccountID, err)
	}
	for _, recipient := range recipients {
		d := mail.Draft{Kind: mail.KindWebhookDisabled, Recipient: recipient, AccountID: e.AccountID, WebhookID: e.ID}
		if err := mail.Within(tx.db).Insert(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
