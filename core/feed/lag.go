package feed

import (
	"context"
	"fmt"
)

// ReadLag updates the metric of events that wait for their position. It reads one event of each span that feed_state has as unread.
func (s *Store) ReadLag(ctx context.Context) error {
	var lag float64
	err := s.db.NewRaw(`SELECT coalesce(extract(epoch FROM now() - min(waiting.occurred_at)), 0)::float8
		FROM feed_state CROSS JOIN LATERAL unnest(unread) AS span CROSS JOIN LATERAL (
			SELECT occurred_at FROM events WHERE id >= lower(span) AND id < coalesce(upper(span), 9223372036854775807) ORDER BY id LIMIT 1
		) AS waiting`).Scan(ctx, &lag)
	if err != nil {
		return fmt.Errorf("read how late events get their position: %w", err)
	}
	s.metrics.lag.Set(max(lag, 0))
	return nil
}
