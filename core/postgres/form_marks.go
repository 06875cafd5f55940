package postgres

import (
	"context"
	"fmt"
	"time"
)

// UseMark uses up the mark of a form and tells whether this was the first time. A mark is known by its SHA-256 and kept
// among the nonces until it expires.
func (s *Store) UseMark(ctx context.Context, hash [32]byte, expiresAt time.Time) (first bool, err error) {
	result, err := s.db.NewRaw("INSERT INTO nonces (hash, expires_at) VALUES (?, ?) ON CONFLICT DO NOTHING", hash[:], expiresAt).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("use a form's mark up: %w", err)
	}
	added, err := result.RowsAffected()
	return added == 1, err
}
