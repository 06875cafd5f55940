package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/account"
)

// usageRow is a line of a report on its way in.
type usageRow struct {
	KeyID      uuid.UUID `bun:"key_id,type:uuid"`
	Minute     time.Time `bun:"minute,type:timestamptz"`
	Accepted   int64     `bun:"accepted,type:bigint"`
	Limited    int64     `bun:"limited,type:bigint"`
	Refused    int64     `bun:"refused,type:bigint"`
	LastUsedAt time.Time `bun:"last_used_at,type:timestamptz,nullzero"`
}

// RecordUsage adds a report to what is known of its keys, once however often the report comes. Keys that do not exist
// are left out. A last use counts if it is later than the one known, and as now where it lies ahead.
func (s *Store) RecordUsage(ctx context.Context, reportID uuid.UUID, usages []account.Usage, now time.Time) error {
	if len(usages) == 0 {
		return nil
	}
	rows := make([]usageRow, len(usages))
	for i, u := range usages {
		rows[i] = usageRow(u)
		if u.LastUsedAt.After(now) {
			rows[i].LastUsedAt = now
		}
	}
	return s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		result, err := tx.NewRaw("INSERT INTO usage_reports (id, received_at) VALUES (?, ?) ON CONFLICT DO NOTHING", reportID, now).Exec(ctx)
		if err != nil {
			return fmt.Errorf("note usage report %s: %w", reportID, err)
		}
		if added, err := result.RowsAffected(); err != nil || added == 0 {
			return err
		}
		// Both statements take their rows in one order, so that reports on the same keys wait for each other in a line and
		// never in a circle.
		if _, err := tx.NewRaw(addUsage, tx.NewValues(&rows)).Exec(ctx); err != nil {
			return fmt.Errorf("add usage report %s: %w", reportID, err)
		}
		if _, err := tx.NewRaw(moveLastUse, tx.NewValues(&rows)).Exec(ctx); err != nil {
			return fmt.Errorf("move the last uses of usage report %s: %w", reportID, err)
		}
		return nil
	})
}

const addUsage = `WITH report (key_id, minute, accepted, limited, refused, last_used_at) AS (?)
INSERT INTO key_usage (account_id, minute, key_id, accepted, limited, refused)
SELECT api_keys.account_id, report.minute, report.key_id, sum(report.accepted), sum(report.limited), sum(report.refused)
FROM report JOIN api_keys ON api_keys.id = report.key_id
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
ON CONFLICT (account_id, minute, key_id) DO UPDATE SET
	accepted = key_usage.accepted + excluded.accepted,
	limited = key_usage.limited + excluded.limited,
	refused = key_usage.refused + excluded.refused`

const moveLastUse = `WITH report (key_id, minute, accepted, limited, refused, last_used_at) AS (?),
latest AS (SELECT key_id, max(last_used_at) AS at FROM report GROUP BY key_id),
later AS (
	SELECT api_keys.id, latest.at FROM api_keys JOIN latest ON latest.key_id = api_keys.id
	WHERE latest.at > coalesce(api_keys.last_used_at, '-infinity')
	ORDER BY api_keys.id FOR NO KEY UPDATE OF api_keys
)
UPDATE api_keys SET last_used_at = later.at FROM later
WHERE api_keys.id = later.id AND later.at > coalesce(api_keys.last_used_at, '-infinity')`

// Usage reads what was asked with an account's keys, deleted ones included, in the minutes that began at since or later,
// ordered by key and minute. LastUsedAt is left zero.
func (s *Store) Usage(ctx context.Context, accountID uuid.UUID, since time.Time) ([]account.Usage, error) {
	var rows []usageRow
	err := s.db.NewRaw(`SELECT key_id, minute, accepted, limited, refused FROM key_usage
		WHERE account_id = ? AND minute >= ? ORDER BY key_id, minute`, accountID, since).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the usage of account %s: %w", accountID, err)
	}
	usages := make([]account.Usage, len(rows))
	for i, row := range rows {
		usages[i] = account.Usage(row)
		usages[i].Minute = row.Minute.UTC()
	}
	return usages, nil
}
