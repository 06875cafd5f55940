package identity

import (
	"context"
	"fmt"
	"time"

	"intents.internal/core/postgres"
)

// InsertNonce stores a nonce, identified by its SHA-256, for one use until it expires.
func (s *Store) InsertNonce(ctx context.Context, hash [32]byte, expiresAt time.Time) error {
	_, err := s.db.NewRaw("INSERT INTO nonces (hash, expires_at) VALUES ($1, ?)", expiresAt).Conn(postgres.Bind(s.db.Pool(), hash[:])).Exec(ctx)
	if err != nil {
		return fmt.Errorf("insert a nonce: %w", err)
	}
	return nil
}

// TakeNonce uses a nonce and reports whether it was valid. Of several concurrent uses only one is valid.
func (s *Store) TakeNonce(ctx context.Context, hash [32]byte, now time.Time) (bool, error) {
	result, err := s.db.NewRaw("DELETE FROM nonces WHERE hash = $1 AND expires_at > ?", now).Conn(postgres.Bind(s.db.Pool(), hash[:])).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("take a nonce: %w", err)
	}
	taken, err := result.RowsAffected()
	return taken == 1, err
}
