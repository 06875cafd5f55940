package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"intents.internal/core/postgres"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/wire"
)

const (
	// filterKept is how long a filter is given out: gateways that start together share one, and what has changed since is
	// in the feed.
	filterKept = 5 * time.Minute
	// filterTimeout bounds the making of one, which takes a few seconds for each million keys.
	filterTimeout = 5 * time.Minute
	// roomForKeys is for how many keys, at least, a filter has room that are made while it is in use.
	roomForKeys = 10_000
)

// keyFilter is the filter of all keys, as it was made last.
type keyFilter struct {
	mu     sync.Mutex
	made   time.Time
	cursor string
	answer []byte
}

// getKeyFilter answers the gateways' GET /internal/key-filter.
func (s *Server) getKeyFilter(w http.ResponseWriter, r *http.Request) error {
	answer, err := s.filter.current(r.Context(), s.Store, s.keys)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, json.RawMessage(answer))
}

// current gives the answer, made anew where it is too old or the feed has no longer its cursor, as after a failover of Postgres.
// Who asks meanwhile waits for it; if whoever began it leaves, it is made all the same, for those that ask again.
func (f *keyFilter) current(ctx context.Context, store *postgres.Store, feed *keyFeed) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil { // it was a long wait
		return nil, err
	}
	if f.answer != nil && time.Since(f.made) < filterKept {
		if _, _, err := feed.after(ctx, f.cursor, 0); !errors.Is(err, postgres.ErrCursorExpired) {
			return f.answer, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), filterTimeout)
	defer cancel()
	made := time.Now()
	answer, cursor, err := makeKeyFilter(ctx, store)
	if err != nil {
		return nil, err
	}
	f.answer, f.cursor, f.made = answer, cursor, made
	return answer, nil
}

func makeKeyFilter(ctx context.Context, store *postgres.Store) (answer []byte, cursor string, err error) {
	// The cursor comes first: a key that is made while the others are read is a change since.
	_, cursor, err = store.KeyChanges(ctx, nil, store.Now())
	if err != nil {
		return nil, "", err
	}
	count, err := store.CountKeys(ctx)
	if err != nil {
		return nil, "", err
	}
	filter := apikey.NewFilter(count + max(roomForKeys, count/4))
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
