package postgres

import (
	"context"
	"fmt"
	"sync"
)

// confirmations are the calls of Confirm that share commits.
type confirmations struct {
	mu sync.Mutex
	// next is the commit that has not begun, nil if nobody waits for one.
	next    *confirmation
	running bool
}

// confirmation is a commit of its own. err is set when done is closed.
type confirmation struct {
	done chan struct{}
	err  error
}

// Confirm waits until all that the caller has read is as durable as a commit, and returns an error if that cannot be said.
//
// Postgres shows the rows of a commit that still waits for a synchronous standby once that wait is cancelled, as it is when the client gives
// up; a failover may lose them. A later commit waits for a later position of the log, and so for those rows too. Calls that wait at the same
// time share a commit, so that they use one connection however many they are.
func (d *DB) Confirm(ctx context.Context) error {
	c := &d.confirmations
	c.mu.Lock()
	if c.next == nil {
		c.next = &confirmation{done: make(chan struct{})}
	}
	mine := c.next
	if !c.running {
		c.running = true
		go d.confirm()
	}
	c.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return fmt.Errorf("confirm what was read: %w", ctx.Err())
	}
}

// confirm commits until nobody waits.
func (d *DB) confirm() {
	c := &d.confirmations
	for {
		c.mu.Lock()
		current := c.next
		c.next, c.running = nil, current != nil
		c.mu.Unlock()
		if current == nil {
			return
		}
		if err := d.emitMessage(); err != nil {
			current.err = fmt.Errorf("confirm what was read: %w", err)
		}
		close(current.done)
	}
}

// emitMessage commits a transaction that writes to the log and nothing else.
func (d *DB) emitMessage() error {
	ctx, cancel := context.WithTimeout(context.Background(), d.ClientTimeout())
	defer cancel()
	_, err := d.ExecContext(ctx, "SELECT pg_logical_emit_message(true, 'intents', '')")
	return err
}
