package identity

import (
	"context"
	"fmt"
	"iter"

	"intents.internal/core/postgres"
	"intents.internal/pkg/apikey"
)

// hashBatch is how many hashes one statement reads.
const hashBatch = 10_000

// CountKeys returns the number of keys, usable or not, except for deleted ones.
func (s *Store) CountKeys(ctx context.Context) (count int, err error) {
	if err = s.db.NewRaw("SELECT count(*) FROM api_keys WHERE deleted_at IS NULL").Scan(ctx, &count); err != nil {
		return 0, fmt.Errorf("count keys: %w", err)
	}
	return count, nil
}

// KeyHashes yields the hashes of all keys that exist during the whole read, in ascending order. They are read in batches, so that
// a slow caller holds neither a connection nor a snapshot. An error ends the sequence.
func (s *Store) KeyHashes(ctx context.Context) iter.Seq2[apikey.Hash, error] {
	return func(yield func(apikey.Hash, error) bool) {
		last := []byte{}
		for {
			var batch [][]byte
			err := s.db.NewRaw("SELECT hash FROM api_keys WHERE hash > $1 AND deleted_at IS NULL ORDER BY hash LIMIT ?", hashBatch).
				Conn(postgres.Bind(s.db.Pool(), last)).Scan(ctx, &batch)
			if err != nil {
				yield(apikey.Hash{}, fmt.Errorf("read the keys' hashes: %w", err))
				return
			}
			for _, hash := range batch {
				if !yield(apikey.Hash(hash), nil) {
					return
				}
			}
			if len(batch) < hashBatch {
				return
			}
			last = batch[len(batch)-1]
		}
	}
}
