package postgres

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"intents.internal/core/transfer"
)

// countedSize is up to which size of the table, in bytes, intents are counted one by one: some 40,000 of them, within
// milliseconds.
const countedSize = 16 << 20

// statuses are all there are, so that one which no intent has is told as 0.
var statuses = []transfer.Status{
	transfer.Created, transfer.Submitted, transfer.Confirmed, transfer.Filled, transfer.Refunded, transfer.Failed, transfer.Expired,
	transfer.Cancelled,
}

// Census brings the metrics up to date that tell how many intents there are of each status and whether any is overdue. It
// costs the same however many there are: a small table is counted, for a large one Postgres's own statistics are read,
// which its autovacuum renews whenever a tenth of the rows has changed. Where these are missing nothing is told.
func (s *Store) Census(ctx context.Context) error {
	counts, err := s.countIntents(ctx)
	if err == nil {
		err = s.readExpiryLag(ctx)
	}
	if err != nil {
		s.metrics.censusFailure.Inc()
		return fmt.Errorf("take the census of intents: %w", err)
	}
	if counts == nil {
		s.metrics.intents.Reset()
		return nil
	}
	for _, status := range statuses {
		s.metrics.intents.WithLabelValues(string(status)).Set(counts[status])
	}
	return nil
}

// countIntents returns nil where the table is large and has no statistics.
func (s *Store) countIntents(ctx context.Context) (map[transfer.Status]float64, error) {
	var size int64
	if err := s.db.NewRaw("SELECT sum(pg_relation_size(relid)) FROM "+transferTables).Scan(ctx, &size); err != nil {
		return nil, err
	}
	count := s.db.NewRaw("SELECT status, count(*)::float8 AS intents FROM transfers GROUP BY status")
	if size > countedSize {
		count = s.estimate()
	}
	var rows []struct {
		Status  transfer.Status
		Intents float64
	}
	if err := count.Scan(ctx, &rows); err != nil {
		return nil, err
	}
	if size > countedSize && len(rows) == 0 {
		return nil, nil //nolint:nilnil // no statistics are no error
	}
	counts := make(map[transfer.Status]float64, len(rows))
	for _, row := range rows {
		counts[row.Status] = row.Intents
	}
	return counts, nil
}

// transferTables are the partitions of transfers, or the table itself.
const transferTables = `(SELECT 'transfers'::regclass AS relid WHERE NOT EXISTS (SELECT FROM pg_partition_tree('transfers'))
	UNION ALL SELECT relid FROM pg_partition_tree('transfers') WHERE isleaf) AS tables`

// estimate reckons as the planner does: the rows a page had when they were last counted, times the pages of today, times
// the share of the rows with each status in the last sample. A status that the sample did not meet is rare.
func (s *Store) estimate() *bun.RawQuery {
	return s.db.NewRaw(`SELECT common.status, sum(common.share * rows.number) AS intents
		FROM (
			SELECT relname, reltuples::float8 / relpages * (pg_relation_size(oid) / current_setting('block_size')::int) AS number
			FROM pg_class JOIN ` + transferTables + ` ON relid = oid WHERE relpages > 0 AND reltuples > 0
		) AS rows JOIN pg_stats AS s ON s.tablename = rows.relname,
			unnest(s.most_common_vals::text::text[], s.most_common_freqs::float8[]) AS common (status, share)
		WHERE s.schemaname = current_schema() AND s.attname = 'status' GROUP BY common.status`)
}

func (s *Store) readExpiryLag(ctx context.Context) error {
	var lag float64
	err := s.db.NewRaw(`SELECT greatest(coalesce(extract(epoch FROM now() - min(deadline)), 0), 0)::float8
		FROM transfers WHERE status = ?`, transfer.Created).Scan(ctx, &lag)
	if err != nil {
		return err
	}
	s.metrics.expiryLag.Set(lag)
	return nil
}
