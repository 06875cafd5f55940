package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
)

// shortPage is the largest page that is read at once, whoever else reads.
const shortPage = 100

// longLists makes those who read long lists take turns: together they have a quarter of the connections, and one account
// has one of these. A crowd that asks for long lists would otherwise have every connection, and all else would wait for it:
// verdicts on keys, single intents, short pages. It is safe for concurrent use.
type longLists struct {
	places   chan struct{}
	mu       sync.Mutex
	accounts map[uuid.UUID]*readers
}

// readers are those of one account that read or wait.
type readers struct {
	turn  chan struct{}
	count int
}

func newLongLists(connections int) *longLists {
	return &longLists{places: make(chan struct{}, max(1, connections/4)), accounts: map[uuid.UUID]*readers{}}
}

// enter waits until a batch of up to n intents may be read for the account. The caller calls leave when it has been.
func (l *longLists) enter(ctx context.Context, accountID uuid.UUID, n int) (leave func(), err error) {
	if n <= shortPage {
		return func() {}, nil
	}
	own := l.join(accountID)
	for taken, place := range []chan struct{}{own.turn, l.places} {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			if taken > 0 {
				<-own.turn
			}
			l.part(accountID, own)
			return nil, fmt.Errorf("wait to read a long list: %w", ctx.Err())
		}
	}
	return func() {
		<-l.places
		<-own.turn
		l.part(accountID, own)
	}, nil
}

func (l *longLists) join(accountID uuid.UUID) *readers {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.accounts[accountID]
	if own == nil {
		own = &readers{turn: make(chan struct{}, 1)}
		l.accounts[accountID] = own
	}
	own.count++
	return own
}

func (l *longLists) part(accountID uuid.UUID, own *readers) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.count--; own.count == 0 {
		delete(l.accounts, accountID)
	}
}
