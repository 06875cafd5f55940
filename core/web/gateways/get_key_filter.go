package gateways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"

	"intents.internal/core/identity"
	"intents.internal/core/postgres"
	"intents.internal/core/web/route"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/wire"
)

const (
	// filterTTL is how long a filter is served. Gateways that start at the same time share one, and later changes are in the
	// feed.
	filterTTL = 5 * time.Minute
	// filterTimeout bounds the time to build a filter, which takes a few seconds per million keys.
	filterTimeout = 5 * time.Minute
	// minSpareKeys is the minimum number of new keys for which a filter has capacity. A filter since which more keys changed is not
	// served again: each gateway would have to read all these changes.
	minSpareKeys = 10_000
)

// keyFilter caches the newest filter of all keys.
type keyFilter struct {
	// checks has one check at a time, which alone uses the fields below.
	checks  singleflight.Group
	builtAt time.Time
	cursor  string
	answer  []byte
}

// getKeyFilter answers the gateways' GET /internal/key-filter.
func (s *Server) getKeyFilter(w http.ResponseWriter, r *http.Request) error {
	answer, err := s.filter.current(r.Context(), s.keys)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, json.RawMessage(answer))
}

// current returns the cached response, or rebuilds it if it is too old, too many keys have changed, or the feed has lost its cursor,
// for example after a failover of Postgres. Concurrent requests share one check; a request waits no longer than ctx, and the check goes on
// without it.
func (f *keyFilter) current(ctx context.Context, feed *keyFeed) ([]byte, error) {
	checked := f.checks.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), filterTimeout)
		defer cancel()
		return f.check(ctx, feed)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-checked:
		answer, _ := result.Val.([]byte)
		return answer, result.Err
	}
}

func (f *keyFilter) check(ctx context.Context, feed *keyFeed) ([]byte, error) {
	if f.answer != nil && time.Since(f.builtAt) < filterTTL {
		changed, _, err := feed.after(ctx, f.cursor, 0)
		if !errors.Is(err, postgres.ErrCursorExpired) && len(changed) <= minSpareKeys {
			return f.answer, err
		}
	}
	builtAt := time.Now()
	answer, cursor, err := buildKeyFilter(ctx, feed.store, feed.now())
	if err != nil {
		return nil, err
	}
	f.answer, f.cursor, f.builtAt = answer, cursor, builtAt
	return answer, nil
}

func buildKeyFilter(ctx context.Context, store *identity.Store, now time.Time) (answer []byte, cursor string, err error) {
	// The cursor is read first, so that a key created during the scan is a change after the cursor.
	_, cursor, err = store.KeyChanges(ctx, nil, now)
	if err != nil {
		return nil, "", err
	}
	count, err := store.CountKeys(ctx)
	if err != nil {
		return nil, "", err
	}
	filter := apikey.NewFilter(count + max(minSpareKeys, count/4))
	for hash, err := range store.KeyHashes(ctx) {
		if err != nil {
			return nil, "", err
		}
		filter.Add(hash)
	}
	text, err := filter.MarshalBinary()
	if err != nil {
		return nil, "", fmt.Errorf("write the filter of keys: %w", err)
	}
	answer, err = json.Marshal(wire.KeyFilter{Filter: text, Cursor: cursor})
	return answer, cursor, err
}
