package faults_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/chains/rpc/rpctest"
	"intents.internal/core/intent/transfer"
)

// fork is a fork of a chain below the newest block that was read, one block longer than the chain, and mined along with it from now on.
// A fork above that block would be taken for the chain: nothing that is known contradicts it.
func (b *bridges) fork(t *testing.T, n int) *rpctest.Chain {
	t.Helper()
	progress, err := b.store.ChainProgress(t.Context(), b.ids[n])
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forks[n] = b.chains[n].Fork(progress.Final)
	b.forks[n].MineEmpty(len(b.minedAt[n]) - int(progress.Final))
	return b.forks[n]
}

// confirmedBy and finalBy are the newest blocks that a block's event waits for before it confirms an intent or ends it.
func confirmedBy(block uint64) uint64 { return block + bridgeConfirmations - 1 }
func finalBy(block uint64) uint64     { return block + 2*bridgeConfirmations - 1 }

// endChain is the chain that ends the bridge.
func (b *bridge) endChain() int {
	if b.refunded {
		return 0
	}
	return 1
}

// minedSince is when a block was mined; ok is false while it is not.
func (b *bridges) minedSince(n int, block uint64) (at time.Time, ok bool) {
	if block >= uint64(len(b.minedAt[n])) {
		return at, false
	}
	return b.minedAt[n][block], true
}

// dueAt is the earliest time at which the bridge may have a status; ok is false while the chain does not give it that status.
func (b *bridges) dueAt(made *bridge, status transfer.Status) (at time.Time, ok bool) {
	switch {
	case status == transfer.Created:
		return made.intent.CreatedAt, true
	case made.opened == 0:
		return at, false
	case status == transfer.Submitted:
		return b.minedSince(0, made.opened)
	case status == transfer.Confirmed:
		return b.minedSince(0, confirmedBy(made.opened))
	case made.ended == 0:
		return at, false
	case status == transfer.Filled && !made.refunded, status == transfer.Refunded && made.refunded:
		return b.minedSince(made.endChain(), finalBy(made.ended))
	default:
		return at, false
	}
}

// watchStatuses compares all statuses with the chains again and again until ctx ends.
func watchStatuses(ctx context.Context, t *testing.T, all []*bridges) {
	t.Helper()
	for ; ctx.Err() == nil; pass(t, 50*time.Millisecond) {
		statuses, err := readStatuses(ctx, all[0])
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("read the statuses: %v", err)
			}
			return
		}
		for _, b := range all {
			b.mustNotBeAhead(t, statuses)
		}
	}
}

func readStatuses(ctx context.Context, b *bridges) (statuses map[uuid.UUID]transfer.Status, err error) {
	rows, err := b.store.Pool().QueryContext(ctx, "SELECT id, status FROM transfers")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	statuses = map[uuid.UUID]transfer.Status{}
	for rows.Next() {
		var id uuid.UUID
		var status transfer.Status
		if err := rows.Scan(&id, &status); err != nil {
			return nil, err
		}
		statuses[id] = status
	}
	return statuses, rows.Err()
}

// mustNotBeAhead wants that no bridge has a status that its chains do not give it yet.
func (b *bridges) mustNotBeAhead(t *testing.T, statuses map[uuid.UUID]transfer.Status) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for n, made := range b.made {
		if status, stored := statuses[made.intent.ID]; stored {
			if _, ok := b.dueAt(made, status); !ok {
				t.Errorf("bridge %d of %s is %s: opened in block %d, ended in block %d", n, b.ids[0], status, made.opened, made.ended)
			}
		}
	}
}

// slowest is the longest time from the block that a status waits for until the status, of confirmed and of the last one. It wants that
// none came before its block.
func (b *bridges) slowest(t *testing.T) (confirmed, ended time.Duration) {
	t.Helper()
	for n, made := range b.made {
		for _, e := range b.events(t, made) {
			b.mu.Lock()
			due, ok := b.dueAt(made, e.To)
			b.mu.Unlock()
			late := e.At.Sub(due.Truncate(time.Microsecond)) // Postgres' times have microseconds
			if !ok || late < 0 {
				t.Errorf("bridge %d of %s was %s %s before its block", n, b.ids[0], e.To, -late)
			}
			if e.To == transfer.Confirmed {
				confirmed = max(confirmed, late)
			}
			if transfer.Final(made.intent.Type, e.To) {
				ended = max(ended, late)
			}
		}
	}
	return confirmed, ended
}
