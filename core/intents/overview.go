package intents

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
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

// TokenVolume is how many intents have sent a token, and how much of its smallest unit.
type TokenVolume struct {
	Token caip.AccountID
	Count int
	Sum   *big.Int
}

// TokenVolumes adds up what an account's intents of an environment since a time that are in one of the statuses send, by token: the tokens with
// the most intents, up to limit. A simulated intent has sent nothing. Like DayCounts it counts the newest postgres.LongScan intents of all statuses.
func (s *Store) TokenVolumes(
	ctx context.Context, accountID uuid.UUID, environment network.Environment, since time.Time, statuses []transfer.Status, limit int,
) (volumes []TokenVolume, whole bool, err error) {
	release, err := s.db.LongLists.Acquire(ctx, accountID, postgres.LongScan)
	if err != nil {
		return nil, false, err
	}
	defer release()
	var rows []struct {
		SourceChain, SourceToken, Sum string
		Count, Examined               int
	}
	list := postgres.ListScan{Scan: postgres.LongScan}
	err = list.InIndexOrder(ctx, s.db, func(ctx context.Context, db bun.IDB) error {
		return db.NewRaw(`SELECT source_chain, source_token, count(*) FILTER (WHERE counts) AS count,
			coalesce(sum(source_amount) FILTER (WHERE counts), 0)::text AS sum, (sum(count(*)) OVER ())::bigint AS examined FROM (
				SELECT source_chain, source_token, source_amount, status IN (?) AND NOT simulated AS counts FROM transfers
				WHERE account_id = ? AND environment = ? AND id >= ? ORDER BY id DESC LIMIT ?
			) AS newest GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT ?`,
			bun.List(statuses), accountID, environment, transfer.FirstID(since), postgres.LongScan, limit).Scan(ctx, &rows)
	})
	if err != nil {
		return nil, false, fmt.Errorf("add up the transfers of account %s: %w", accountID, err)
	}
	whole = true
	for _, row := range rows {
		whole = row.Examined < postgres.LongScan
		sum, _ := new(big.Int).SetString(row.Sum, 10) // of numeric(78, 0)
		chain, err := caip.ParseChainID(row.SourceChain)
		if err != nil {
			return nil, false, fmt.Errorf("read the chain of a transfer of account %s: %w", accountID, err)
		}
		if row.Count > 0 {
			volumes = append(volumes, TokenVolume{caip.AccountID{Chain: chain, Address: row.SourceToken}, row.Count, sum})
		}
	}
	return volumes, whole, nil
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
