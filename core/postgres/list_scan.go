package postgres

import (
	"context"
	"database/sql"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// LongScan is how many index rows one page of a filtered list examines at most, under the semaphore of long lists. A row that is examined
// costs about a tenth of one that is returned.
const LongScan = 10_000

// shortScan is LongScan without the semaphore.
const shortScan = 10 * (ShortPage - 1)

// ListScan reads a page of an account's list by keyset from the index that has the list in its order, where the index does not decide all
// of the list's filter. It examines at most Scan rows of the index, however few of them match.
type ListScan struct {
	// Index selects the key columns and Matches from the rows of the index.
	Index *bun.SelectQuery
	// Order is the order of the list, by the key columns alone.
	Order string
	// Rows is how many rows that match are read at most, Scan how many are examined.
	Rows, Scan int
}

// Matches selects the condition that the index does not decide, as the column that a ListScan reads.
func Matches(index *bun.SelectQuery, condition string, args ...any) *bun.SelectQuery {
	return index.ColumnExpr("("+condition+") AS matches", args...)
}

// Query returns the SELECT of ScannedRows: those that match, and the last one that may be examined.
func (s ListScan) Query(db bun.IDB) *bun.RawQuery {
	// Both sub-queries are in the order of the index, so Postgres reads no row after the last one of the page.
	return db.NewRaw(`SELECT * FROM (
			SELECT *, row_number() OVER (ORDER BY ?0) AS ordinal FROM (?1) AS scanned
		) AS numbered WHERE matches OR ordinal = ?2 ORDER BY ?0 LIMIT ?3`,
		bun.Safe(s.Order), s.Index.OrderExpr(s.Order).Limit(int64(s.Scan)), s.Scan, s.Rows)
}

// ScannedRow is a row of a ListScan.
type ScannedRow[Key any] struct {
	Key     Key `bun:"embed:"`
	Matches bool
	// Ordinal counts the examined rows from 1.
	Ordinal int
}

// ScannedPage returns the keys of the rows that match, and the key after which the list continues, nil at its end. A page that ends at
// the bound of the scan continues after the last row that was examined, and may have few keys or none.
func ScannedPage[Key any](s ListScan, rows []ScannedRow[Key]) (keys []Key, next *Key) {
	for n := range rows {
		if rows[n].Matches {
			keys = append(keys, rows[n].Key)
		}
		if len(keys) == s.Rows || rows[n].Ordinal == s.Scan {
			next = &rows[n].Key
		}
	}
	return keys, next
}

// IndexOrder is a statement for a transaction that reads a list. A planner that expects few rows would rather read all of them and sort, and
// its statistics are wrong about an account that has grown since ANALYZE.
const IndexOrder = "SELECT set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true)"

// InIndexOrder runs the SELECT of a ListScan so that it reads no more than Scan rows.
func (s ListScan) InIndexOrder(ctx context.Context, db bun.IDB, read func(context.Context, bun.IDB) error) error {
	if s.Scan <= ShortPage {
		return read(ctx, db) // the planner takes the index for as few rows
	}
	ordered := func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewRaw(IndexOrder).Exec(ctx); err != nil {
			return err
		}
		return read(ctx, tx)
	}
	if tx, within := db.(bun.Tx); within {
		return ordered(ctx, tx)
	}
	return db.RunInTx(ctx, &sql.TxOptions{ReadOnly: true}, ordered)
}

// Scan reads a page, see ScannedPage.
func Scan[Key any](ctx context.Context, db bun.IDB, s ListScan) (keys []Key, next *Key, err error) {
	var rows []ScannedRow[Key]
	err = s.InIndexOrder(ctx, db, func(ctx context.Context, db bun.IDB) error { return s.Query(db).Scan(ctx, &rows) })
	if err != nil {
		return nil, nil, err
	}
	keys, next = ScannedPage(s, rows)
	return keys, next, nil
}

// ReadPage reads one page of an account's list, of up to rows rows. read examines up to scan rows of the list's index; it returns
// true if a longer scan may find more for the page. The semaphore weighs the scan: a list whose index decides its filter is scanned as far
// as the page is long, and a filtered one up to LongScan. A short page of a filtered list is read under the semaphore only if a short
// scan does not fill it.
func (l *ListSemaphore) ReadPage(
	ctx context.Context, accountID uuid.UUID, rows int, filtered bool, read func(ctx context.Context, scan int) (incomplete bool, err error),
) error {
	scan := rows
	if filtered {
		scan = LongScan
		if rows <= ShortPage {
			if incomplete, err := read(ctx, shortScan); err != nil || !incomplete {
				return err
			}
		}
	}
	release, err := l.Acquire(ctx, accountID, scan)
	if err != nil {
		return err
	}
	defer release()
	_, err = read(ctx, scan)
	return err
}
