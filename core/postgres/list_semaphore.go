package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/google/uuid"

	"intents.internal/pkg/fair"
)

// ShortPage is the number of rows of the largest page that is read without the semaphore: 100, and one that shows whether another
// page follows.
const ShortPage = 101

// ListSemaphore bounds the concurrent reads of many rows of lists: a quarter of the connections in total, and one per account. Without
// it many long lists would use every connection, and key checks, single intents and short pages would wait. It is safe for
// concurrent use.
type ListSemaphore struct{ all *fair.Slots[uuid.UUID] }

func newListSemaphore(connections int) *ListSemaphore {
	return &ListSemaphore{fair.New[uuid.UUID](max(1, connections/4), fair.AtMost(1))}
}

// Acquire waits until up to n index rows of the account may be read. The caller must call release after it.
func (l *ListSemaphore) Acquire(ctx context.Context, accountID uuid.UUID, n int) (release func(), err error) {
	if n <= ShortPage {
		return func() {}, nil
	}
	if release, err = l.all.Acquire(ctx, accountID, math.MaxInt); err != nil {
		return nil, fmt.Errorf("wait to read a long list: %w", err)
	}
	return release, nil
}
