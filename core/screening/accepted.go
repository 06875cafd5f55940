package screening

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// AcceptedFor is how long every core may take an accepted file in. It is bounded, so that an empty file, whose hash is always the same, is
// not let in again when a download fails a year later.
const AcceptedFor = 24 * time.Hour

type acceptedRow struct {
	bun.BaseModel `bun:"table:screening_accepted,alias:screening_accepted"`

	SHA256     []byte    `bun:"sha256,pk"`
	AcceptedAt time.Time `bun:"accepted_at"`
}

// Accept lets files with these contents in, for AcceptedFor from now.
func (s *Store) Accept(ctx context.Context, sums ...[sha256.Size]byte) error {
	ctx, cancel := s.timeout(ctx)
	defer cancel()
	rows := map[[sha256.Size]byte]acceptedRow{}
	for _, sum := range sums {
		rows[sum] = acceptedRow{SHA256: sum[:], AcceptedAt: s.Now()}
	}
	for _, row := range rows {
		_, err := s.db.NewInsert().Model(&row).On("CONFLICT (sha256) DO UPDATE").Set("accepted_at = excluded.accepted_at").Exec(ctx)
		if err != nil {
			return fmt.Errorf("accept a smaller screening file: %w", err)
		}
	}
	return nil
}

// Accepted reports whether files with all of these contents are let in.
func (s *Store) Accepted(ctx context.Context, sums ...[sha256.Size]byte) (bool, error) {
	ctx, cancel := s.timeout(ctx)
	defer cancel()
	wanted := map[[sha256.Size]byte]bool{}
	var all [][]byte
	for _, sum := range sums {
		if !wanted[sum] {
			wanted[sum], all = true, append(all, sum[:])
		}
	}
	count, err := s.db.NewSelect().Model((*acceptedRow)(nil)).
		Where("sha256 IN (?)", bun.List(all)).Where("accepted_at > ?", s.Now().Add(-AcceptedFor)).Count(ctx)
	if err != nil {
		return false, fmt.Errorf("read which smaller screening files are accepted: %w", err)
	}
	return int(count) == len(all), nil
}
