package postgres

import (
	"database/sql"
	"time"

	"github.com/google/uuid"
)

// RowsChanged returns the number of rows that a statement changed.
func RowsChanged(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// UTC returns a time in UTC, nil for nil.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// NullID is NULL for uuid.Nil.
func NullID(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}
