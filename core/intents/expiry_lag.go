package intents

import (
	"context"
	"fmt"

	"intents.internal/core/transfer"
)

// ReadExpiryLag updates the metric of overdue intents. It uses an index on the deadlines of created intents.
func (s *Store) ReadExpiryLag(ctx context.Context) error {
	var lag float64
	err := s.db.NewRaw(`SELECT greatest(coalesce(extract(epoch FROM now() - min(deadline)), 0), 0)::float8
		FROM transfers WHERE status = ?`, transfer.Created).Scan(ctx, &lag)
	if err != nil {
		s.metrics.expiryLagFailures.Inc()
		return fmt.Errorf("read how late intents expire: %w", err)
	}
	s.metrics.expiryLag.Set(lag)
	return nil
}
