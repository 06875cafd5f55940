package intents

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// DayCount is how many intents of a day, in UTC, are in a status now.
type DayCount struct {
	Day    time.Time
	Status transfer.Status
	Count  int
}

// DayCounts counts an account's intents of an environment since a time by day and status. It counts the newest postgres.LongScan intents: whole is false if there may be
// more.
func (s *Store) DayCounts(
	ctx context.Context, accountID uuid.UUID, environment network.Environment, since time.Time,
) (counts []DayCount, whole bool, err error) {
	release, err := s.db.LongLists.Acquire(ctx, accountID, postgres.LongScan)
	if err != nil {
		return nil, false, err
	}
	defer release()
	list := postgres.ListScan{Scan: postgres.LongScan}
	err = list.InIndexOrder(ctx, s.db, func(ctx context.Context, db bun.IDB) error {
		return db.NewRaw(`SELECT date_trunc('day', created_at AT TIME ZONE 'UTC') AS day, status, count(*) AS count FROM (
				SELECT created_at, status FROM transfers WHERE account_id = ? AND environment = ? AND id >= ? ORDER BY id DESC LIMIT ?
			) AS newest GROUP BY 1, 2`, accountID, environment, transfer.FirstID(since), postgres.LongScan).Scan(ctx, &counts)
	})
	if err != nil {
		return nil, false, fmt.Errorf("count the transfers of account %s: %w", accountID, err)
	}
	total := 0
	for _, c := range counts {
		total += c.Count
	}
	return counts, total < postgres.LongScan, nil
}

// Expiring reads up to limit of an account's intents of an environment that are created and whose deadline is before a time, newest first. Like Refundables it
// examines at most postgres.LongScan intents.
func (s *Store) Expiring(
	ctx context.Context, accountID uuid.UUID, environment network.Environment, before time.Time, limit int,
) ([]*transfer.Intent, error) {
	return s.newestOf(ctx, accountID, transfer.Created, limit, "environment = ? AND deadline < ?", environment, before)
}

// Refundables reads up to limit of an account's orders of an environment that can be refunded and are not, newest first.
func (s *Store) Refundables(
	ctx context.Context, accountID uuid.UUID, environment network.Environment, limit int,
) ([]*transfer.Intent, error) {
	return s.newestOf(ctx, accountID, transfer.Confirmed, limit, "environment = ? AND refundable_at IS NOT NULL", environment)
}

// newestOf reads up to limit of an account's intents of a status that meet a condition.
func (s *Store) newestOf(
	ctx context.Context, accountID uuid.UUID, status transfer.Status, limit int, condition string, args ...any,
) (intents []*transfer.Intent, err error) {
	var keys []uuid.UUID
	err = s.db.LongLists.ReadPage(ctx, accountID, limit, true, func(ctx context.Context, scan int) (incomplete bool, err error) {
		type key struct{ ID uuid.UUID }
		index := s.db.NewSelect().Table("transfers").Column("id").Where("account_id = ? AND status = ?", accountID, status)
		list := postgres.ListScan{Index: postgres.Matches(index, condition, args...), Order: "id DESC", Rows: limit, Scan: scan}
		found, last, err := postgres.Scan[key](ctx, s.db, list)
		keys = nil
		for _, k := range found {
			keys = append(keys, k.ID)
		}
		return last != nil && len(keys) < limit, err
	})
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	var rows []TransferRow
	if err := s.db.NewSelect().Model(&rows).Where("account_id = ? AND id IN (?)", accountID, bun.List(keys)).Order("id DESC").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read %d transfers of account %s: %w", len(keys), accountID, err)
	}
	return readEach(s, rows, TransferRow.Intent), nil
}
