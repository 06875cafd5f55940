package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
	"intents.internal/pkg/network"
)

// usageRow is one line of a report as a row of VALUES.
type usageRow struct {
	KeyID      uuid.UUID `bun:"key_id,type:uuid"`
	Minute     time.Time `bun:"minute,type:timestamptz"`
	Accepted   int64     `bun:"accepted,type:bigint"`
	Limited    int64     `bun:"limited,type:bigint"`
	Refused    int64     `bun:"refused,type:bigint"`
	LastUsedAt time.Time `bun:"last_used_at,type:timestamptz,nullzero"`
}

// RecordUsage adds a report to the usage of its keys, exactly once even if the report arrives again: added is false then. It ignores keys that do not
// exist. A last use is stored if it is later than the stored one; a last use in the future counts as now.
func (s *Store) RecordUsage(ctx context.Context, reportID uuid.UUID, usages []account.Usage, now time.Time) (added bool, err error) {
	if len(usages) == 0 {
		return false, nil
	}
	rows := make([]usageRow, len(usages))
	for i, u := range usages {
		rows[i] = usageRow(u)
		if u.LastUsedAt.After(now) {
			rows[i].LastUsedAt = now
		}
	}
	err = s.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx Tx) error {
		if err := s.db.AllowLongLocks(ctx, tx.db); err != nil {
			return err
		}
		result, err := tx.db.NewRaw("INSERT INTO usage_reports (id, received_at) VALUES (?, ?) ON CONFLICT DO NOTHING", reportID, now).Exec(ctx)
		if err != nil {
			return fmt.Errorf("note usage report %s: %w", reportID, err)
		}
		stored, err := result.RowsAffected()
		if added = stored > 0; err != nil || !added {
			return err
		}
		// Both statements lock their rows in one order, so that reports on the same keys do not deadlock.
		if _, err := tx.db.NewRaw(addUsage, tx.db.NewValues(&rows)).Exec(ctx); err != nil {
			return fmt.Errorf("add usage report %s: %w", reportID, err)
		}
		if _, err := tx.db.NewRaw(moveLastUse, tx.db.NewValues(&rows)).Exec(ctx); err != nil {
			return fmt.Errorf("move the last uses of usage report %s: %w", reportID, err)
		}
		return nil
	})
	return added, err
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

// usageIntervals groups by intervals counted from since, and returns the busiest minute and the sums of each.
const usageIntervals = `SELECT DISTINCT ON (start) start, minute, accepted, limited, refused,
	sum(accepted) OVER whole AS all_accepted, sum(limited) OVER whole AS all_limited, sum(refused) OVER whole AS all_refused
FROM (
	SELECT date_bin(make_interval(secs => ?0), minute, ?1::timestamptz) AS start, minute, accepted, limited, refused
	FROM key_usage WHERE account_id = ?2 AND key_id = ?3 AND minute >= ?1::timestamptz
) AS minutes
WINDOW whole AS (PARTITION BY start)
ORDER BY start, accepted + limited + refused DESC, minute`

// accountIntervals counts the rows of both environments, because the limit of the scan includes both.
const accountIntervals = `SELECT date_bin(make_interval(secs => ?0), newest.minute, ?1::timestamptz) AS begins, count(*) AS scanned,
	coalesce(sum(accepted) FILTER (WHERE api_keys.environment = ?3), 0)::bigint AS accepted,
	coalesce(sum(limited) FILTER (WHERE api_keys.environment = ?3), 0)::bigint AS limited,
	coalesce(sum(refused) FILTER (WHERE api_keys.environment = ?3), 0)::bigint AS refused
FROM (
	SELECT * FROM key_usage WHERE account_id = ?2 AND minute >= ?1::timestamptz ORDER BY minute DESC, key_id DESC LIMIT ?4
) AS newest LEFT JOIN api_keys ON api_keys.id = newest.key_id
GROUP BY begins ORDER BY begins`

// AccountUsage reads the usage of an account's keys of one environment from the minute since on, in intervals of a length, oldest first. It reads at
// most postgres.LongScan rows, one for each key and minute, the newest: intervals before whole may have more requests than were counted and are
// omitted. Busiest is set for intervals of a minute alone.
func (s *Store) AccountUsage(
	ctx context.Context, accountID uuid.UUID, environment network.Environment, since time.Time, length time.Duration,
) (intervals []account.UsageInterval, whole time.Time, err error) {
	release, err := s.db.LongLists.Acquire(ctx, accountID, postgres.LongScan)
	if err != nil {
		return nil, since, err
	}
	defer release()
	var rows []struct {
		Begins                              time.Time
		Scanned, Accepted, Limited, Refused int64
	}
	list := postgres.ListScan{Scan: postgres.LongScan}
	err = list.InIndexOrder(ctx, s.db, func(ctx context.Context, db bun.IDB) error {
		return db.NewRaw(accountIntervals, length.Seconds(), since, accountID, environment, postgres.LongScan).Scan(ctx, &rows)
	})
	if err != nil {
		return nil, since, fmt.Errorf("read the usage of account %s: %w", accountID, err)
	}
	scanned := int64(0)
	for _, row := range rows {
		scanned += row.Scanned
	}
	if whole = since; scanned >= postgres.LongScan {
		whole, rows = rows[0].Begins.UTC().Add(length), rows[1:]
	}
	for _, row := range rows {
		u := account.UsageInterval{From: row.Begins.UTC(), Accepted: row.Accepted, Limited: row.Limited, Refused: row.Refused}
		if length == time.Minute {
			u.Busiest = account.Usage{Minute: u.From, Accepted: u.Accepted, Limited: u.Limited, Refused: u.Refused}
		}
		intervals = append(intervals, u)
	}
	return intervals, whole, nil
}

// KeyUsage reads the usage of one of an account's keys from the minute since on, in intervals of a length, oldest first.
// Intervals without a request are omitted. A period with many minutes is read under the semaphore of long lists.
func (s *Store) KeyUsage(ctx context.Context, accountID, keyID uuid.UUID, since time.Time, length time.Duration) ([]account.UsageInterval, error) {
	var rows []struct {
		Start, Minute                       time.Time
		Accepted, Limited, Refused          int64
		AllAccepted, AllLimited, AllRefused int64
	}
	release, err := s.db.LongLists.Acquire(ctx, accountID, int(s.Now().Sub(since)/time.Minute))
	if err != nil {
		return nil, err
	}
	defer release()
	err = s.db.NewRaw(usageIntervals, length.Seconds(), since, accountID, keyID).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the usage of key %s: %w", keyID, err)
	}
	intervals := make([]account.UsageInterval, len(rows))
	for i, row := range rows {
		intervals[i] = account.UsageInterval{
			From: row.Start.UTC(), Accepted: row.AllAccepted, Limited: row.AllLimited, Refused: row.AllRefused,
			Busiest: account.Usage{
				KeyID: keyID, Minute: row.Minute.UTC(), Accepted: row.Accepted, Limited: row.Limited, Refused: row.Refused,
			},
		}
	}
	return intervals, nil
}
