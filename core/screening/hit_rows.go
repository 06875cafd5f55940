package screening

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
	"intents.internal/pkg/network"
)

type hitRow struct {
	bun.BaseModel `bun:"table:screening_hits,alias:screening_hits"`

	ID          uuid.UUID           `bun:"id,pk"`
	AccountID   uuid.UUID           `bun:"account_id,nullzero"`
	KeyID       uuid.UUID           `bun:"key_id,nullzero"`
	Environment network.Environment `bun:"environment,nullzero"`
	Stage       Stage               `bun:"stage"`
	Side        Side                `bun:"side"`
	Address     string              `bun:"address"`
	ListLabel   string              `bun:"list_label"`
	IntentID    uuid.UUID           `bun:"intent_id,nullzero"`
	RequestID   string              `bun:"request_id"`
	At          time.Time           `bun:"at"`
}

// InsertHits stores hits, those with the same id once, and counts in the audit logs of their accounts how often something was refused.
// counted are the hits of refusals, of which each is one.
func (s *Store) InsertHits(ctx context.Context, hits, counted []Hit) error {
	ctx, cancel := context.WithTimeout(ctx, postgres.WriteTimeout)
	defer cancel()
	rows := make([]hitRow, len(hits))
	for n, h := range hits {
		rows[n] = hitRow{
			ID: h.ID(), AccountID: h.AccountID, KeyID: h.KeyID, Environment: h.Environment, Stage: h.Stage, Side: h.Side, Address: h.Address,
			ListLabel: h.Label, IntentID: h.IntentID, RequestID: h.RequestID, At: h.At,
		}
	}
	// In one order, so that two cores with the same ids do not wait for each other in a circle.
	slices.SortStableFunc(rows, func(a, b hitRow) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	rows = slices.CompactFunc(rows, func(a, b hitRow) bool { return a.ID == b.ID })
	entries := refusals(counted)
	err := s.db.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx bun.Tx) error {
		if len(rows) > 0 {
			if _, err := tx.NewInsert().Model(&rows).On("CONFLICT (id) DO NOTHING").Exec(ctx); err != nil {
				return err
			}
		}
		for _, e := range entries {
			if err := access.Within(tx).Audit(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write %d hits of the screening list: %w", len(hits), err)
	}
	return nil
}

// refusals are the audit entries of accounts in the order of their ids.
func refusals(counted []Hit) []account.AuditEntry {
	byID := map[uuid.UUID]*account.AuditEntry{}
	for _, h := range counted {
		if h.AccountID == uuid.Nil {
			continue
		}
		e := account.NewHourlyEntry(h.AccountID, h.AccountID.String(), account.Actor{}, account.ScreeningRefused, h.At)
		if known := byID[e.ID]; known != nil {
			known.Repeats, known.OccurredAt = known.Repeats+1, h.At
			continue
		}
		byID[e.ID] = &e
	}
	entries := make([]account.AuditEntry, 0, len(byID))
	for _, id := range slices.SortedFunc(maps.Keys(byID), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) {
		entries = append(entries, *byID[id])
	}
	return entries
}

// Hits reads the hits since a time, oldest first, of one account unless it is uuid.Nil.
func (s *Store) Hits(ctx context.Context, since time.Time, accountID uuid.UUID) ([]Hit, error) {
	var rows []hitRow
	query := s.db.NewSelect().Model(&rows).Where("at >= ?", since).Order("at", "id")
	if accountID != uuid.Nil {
		query.Where("account_id = ?", accountID)
	}
	if err := query.Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the hits of the screening list: %w", err)
	}
	hits := make([]Hit, len(rows))
	for n, r := range rows {
		hits[n] = Hit{
			AccountID: r.AccountID, KeyID: r.KeyID, Environment: r.Environment, Stage: r.Stage, Side: r.Side, Address: r.Address,
			Label: r.ListLabel, IntentID: r.IntentID, RequestID: r.RequestID, At: r.At.UTC(),
		}
	}
	return hits, nil
}
