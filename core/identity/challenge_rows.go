package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"intents.internal/core/identity/account"
	"intents.internal/core/postgres"
)

// Challenge is what an authenticator must sign. PersonID is the person who was signed in when it was made, uuid.Nil for nobody.
type Challenge struct {
	PersonID uuid.UUID
	Text     string
}

// InsertChallenge stores a challenge, identified by the SHA-256 of its cookie, for one use until it expires.
func (s *Store) InsertChallenge(ctx context.Context, hash [32]byte, c Challenge, expiresAt time.Time) error {
	return insertChallenge(ctx, s.db, s.db.Pool(), hash, c, expiresAt)
}

// InsertChallenge is Store.InsertChallenge in the transaction.
func (tx Tx) InsertChallenge(ctx context.Context, hash [32]byte, c Challenge, expiresAt time.Time) error {
	return insertChallenge(ctx, tx.db, tx.db.Tx, hash, c, expiresAt)
}

func insertChallenge(ctx context.Context, db bun.IDB, conn bun.IConn, hash [32]byte, c Challenge, expiresAt time.Time) error {
	_, err := db.NewRaw("INSERT INTO sign_in_challenges (hash, person_id, challenge, expires_at) VALUES ($1, ?, $2, ?)", postgres.NullID(c.PersonID), expiresAt).
		Conn(postgres.Bind(conn, hash[:], c.Text)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("insert a challenge: %w", err)
	}
	return nil
}

// TakeChallenge removes and returns a challenge, so that of several concurrent uses one gets it. It returns account.ErrNotFound for one that
// was used or has expired.
func (s *Store) TakeChallenge(ctx context.Context, hash [32]byte, now time.Time) (Challenge, error) {
	var row struct {
		PersonID  uuid.NullUUID
		Challenge string
	}
	err := s.db.NewRaw("DELETE FROM sign_in_challenges WHERE hash = $1 AND expires_at > ? RETURNING person_id, challenge", now).
		Conn(postgres.Bind(s.db.Pool(), hash[:])).Scan(ctx, &row)
	if errors.Is(err, sql.ErrNoRows) {
		return Challenge{}, account.ErrNotFound
	}
	if err != nil {
		return Challenge{}, fmt.Errorf("take a challenge: %w", err)
	}
	return Challenge{PersonID: row.PersonID.UUID, Text: row.Challenge}, nil
}
