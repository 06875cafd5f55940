package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// TransfersChanged tells whether any of an account's intents was made or changed its status since the cursor, and gives
// the cursor for now. It looks at the events since then and at no intent, so it costs little however long the lists are.
// A cursor that is empty, too old or not one of ours says that they changed.
func (s *Store) TransfersChanged(ctx context.Context, accountID uuid.UUID, cursorText string, now time.Time) (changed bool, next string, err error) {
	previous, err := parseCursor(cursorText, now)
	if err != nil {
		previous = cursor{} // nothing is known of what the client holds
	}
	current := cursor{taken: now}
	if previous == (cursor{}) {
		changed = true
		err = s.db.NewRaw("SELECT "+currentHistory+", pg_current_snapshot()::text").Scan(ctx, &current.history, &current.snapshot)
	} else {
		err = s.db.NewRaw(`SELECT `+currentHistory+`, pg_current_snapshot()::text,
			pg_snapshot_xmax(?0::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()) OR EXISTS (
				SELECT FROM events WHERE account_id = ?1 AND xid >= pg_snapshot_xmin(?0::pg_snapshot)
				AND NOT pg_visible_in_snapshot(xid, ?0::pg_snapshot))`, previous.snapshot, accountID).Scan(ctx, &current.history, &current.snapshot, &changed)
		changed = changed || previous.history != current.history
	}
	if sqlState(err) == invalidText {
		return s.TransfersChanged(ctx, accountID, "", now)
	}
	if err != nil {
		return false, "", fmt.Errorf("look for changes of account %s: %w", accountID, err)
	}
	return changed, current.String(), nil
}
