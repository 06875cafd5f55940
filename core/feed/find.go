package feed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// ErrEventNotFound means that an owner's feed has no such event, or keeps it no longer.
var ErrEventNotFound = errors.New("the feed has no such event")

// Find reads an event of an owner's feed by its id.
func (s *Store) Find(ctx context.Context, owner Owner, id ID) (Event, error) {
	var position int64
	err := s.db.NewRaw(`SELECT position FROM feed WHERE account_id = ?0 AND id = ?1 AND environment = ?2`,
		owner.AccountID, uuid.UUID(id), owner.Environment).Scan(ctx, &position)
	if errors.Is(err, sql.ErrNoRows) {
		return Event{}, ErrEventNotFound
	}
	if err != nil {
		return Event{}, fmt.Errorf("find the event %s: %w", id, err)
	}
	// The account is a literal, as for a page.
	events, err := s.eventsAt(ctx, []int64{position}, s.db.NewRaw("?", owner.AccountID))
	if err != nil {
		return Event{}, err
	}
	found, kept := events[position]
	if !kept {
		return Event{}, ErrEventNotFound
	}
	return found, s.Confirm(ctx, position)
}
