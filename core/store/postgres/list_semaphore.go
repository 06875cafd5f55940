package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
)

// ShortPage is the number of rows of the largest page that is read without the semaphore: 100, and one that shows whether another
// page follows.
const ShortPage = 101

// ListSemaphore bounds the concurrent reads of many rows of lists: a quarter of the connections in total, and one per account. Without
// it many long lists would use every connection, and key checks, single intents and short pages would wait. It is safe for
// concurrent use.
type ListSemaphore struct {
	slots    chan struct{}
	mu       sync.Mutex
	accounts map[uuid.UUID]*accountSlot
}

// accountSlot is the slot of one account, which exists while a batch of the account is read or waits.
type accountSlot struct {
	slot chan struct{}
	refs int
}

func newListSemaphore(connections int) *ListSemaphore {
	return &ListSemaphore{slots: make(chan struct{}, max(1, connections/4)), accounts: map[uuid.UUID]*accountSlot{}}
}

// Acquire waits until up to n index rows of the account may be read. The caller must call release after it.
func (l *ListSemaphore) Acquire(ctx context.Context, accountID uuid.UUID, n int) (release func(), err error) {
	if n <= ShortPage {
		return func() {}, nil
	}
	account := l.ref(accountID)
	for acquired, slot := range []chan struct{}{account.slot, l.slots} {
		select {
		case slot <- struct{}{}:
		case <-ctx.Done():
			if acquired > 0 {
				<-account.slot
			}
			l.unref(accountID, account)
			return nil, fmt.Errorf("wait to read a long list: %w", ctx.Err())
		}
	}
	return func() {
		<-l.slots
		<-account.slot
		l.unref(accountID, account)
	}, nil
}

func (l *ListSemaphore) ref(accountID uuid.UUID) *accountSlot {
	l.mu.Lock()
	defer l.mu.Unlock()
	account := l.accounts[accountID]
	if account == nil {
		account = &accountSlot{slot: make(chan struct{}, 1)}
		l.accounts[accountID] = account
	}
	account.refs++
	return account
}

func (l *ListSemaphore) unref(accountID uuid.UUID, account *accountSlot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if account.refs--; account.refs == 0 {
		delete(l.accounts, accountID)
	}
}
