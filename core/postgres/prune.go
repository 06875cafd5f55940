package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

const (
	// usageKept is for how long usage can be read.
	usageKept = 8 * 24 * time.Hour
	// reportsKept is for how long a usage report that comes again is known.
	reportsKept = 24 * time.Hour
	// pruneBatch is how many rows one statement removes, so that it stays within its time limit however many wait.
	pruneBatch = 10_000
)

// Prune removes what nothing can ask for any more: sessions, nonces and rotated keys that have expired, key changes
// that no valid cursor reaches, usage and reports of it that are no longer kept.
func (s *Store) Prune(ctx context.Context, now time.Time) error {
	for _, old := range []struct {
		table, column string
		before        time.Time
	}{
		{"sessions", "expires_at", now},
		{"nonces", "expires_at", now},
		// Rows stay for twice as long as cursors are honoured, so that none is removed under a reader.
		{"key_changes", "changed_at", now.Add(-2 * cursorsKept)},
		{"key_usage", "minute", now.Add(-usageKept)},
		{"usage_reports", "received_at", now.Add(-reportsKept)},
	} {
		if err := s.pruneTable(ctx, old.table, old.column, old.before); err != nil {
			return fmt.Errorf("prune %s: %w", old.table, err)
		}
	}
	// A key that somebody else has in hand is left for the next time, so that nobody waits in a circle.
	_, err := s.db.NewRaw(`UPDATE api_keys SET deleted_at = ?0, updated_at = ?0 WHERE id IN (
		SELECT id FROM api_keys WHERE rotated_at IS NOT NULL AND deleted_at IS NULL AND expires_at <= ?0 FOR UPDATE SKIP LOCKED
	)`, now).Exec(ctx)
	if err != nil {
		return fmt.Errorf("prune rotated keys: %w", err)
	}
	return nil
}

func (s *Store) pruneTable(ctx context.Context, table, column string, before time.Time) error {
	for {
		result, err := s.db.NewRaw("DELETE FROM ?0 WHERE ctid = ANY (ARRAY(SELECT ctid FROM ?0 WHERE ?1 < ?2 LIMIT ?3))",
			bun.Ident(table), bun.Ident(column), before, pruneBatch).Exec(ctx)
		if err != nil {
			return err
		}
		if removed, err := result.RowsAffected(); err != nil || removed < pruneBatch {
			return err
		}
	}
}
