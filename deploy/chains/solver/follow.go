package solver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"intents.internal/deploy/chains/contracts"
)

const (
	pollInterval = time.Second
	// lookBack is how many blocks before the newest are read at the start. Older orders are past their deadline on local chains, which
	// make a block a second.
	lookBack = 10_000
	// rangeLimit bounds the blocks of one request.
	rangeLimit = 2_000
	// rereadBlocks is how many blocks are read again each time, because a reorganization may have changed them.
	rereadBlocks = 16
	// unknownOrderDelay is the additional delay of an order that the feed does not contain.
	unknownOrderDelay = 5 * time.Second
	// maxRefusals bounds the attempts at an order whose transactions nodes or contracts reject.
	maxRefusals = 3
)

// follower follows the orders of one origin.
type follower struct {
	*solver
	origin *chain
	// next is the block after the last that was read, 0 at the start.
	next uint64
	// head is the newest block that was read.
	head uint64
	// seen has the block of each order, because the newest blocks are read again.
	seen    map[common.Hash]uint64
	pending []*order
}

// follow reads the orders that the input settler of a chain opens, and solves them, until the context ends.
func (s *solver) follow(ctx context.Context, origin *chain) {
	f := &follower{solver: s, origin: origin, seen: map[common.Hash]uint64{}}
	state := health{log: s.log.With("chain", origin.ID)}
	for {
		pause := pollInterval
		err := f.readOrders(ctx)
		if err == nil && f.solveDue(ctx) {
			pause = 0
		}
		if !sleep(ctx, state.report(ctx, err, pause)) {
			return
		}
	}
}

// readOrders reads the orders of new blocks.
func (f *follower) readOrders(ctx context.Context) error {
	head, err := f.origin.client.BlockNumber(ctx)
	if err != nil {
		return fmt.Errorf("ask for the newest block: %w", err)
	}
	from := f.next - min(f.next, rereadBlocks)
	if f.next == 0 || head+1 < from { // at the start, or of a chain that began again
		from = head - min(head, lookBack)
		if f.JudgesOnce {
			from = head
		}
		f.seen, f.pending = map[common.Hash]uint64{}, nil
	}
	for from <= head {
		to := min(head, from+rangeLimit-1)
		orders, err := f.origin.opened(ctx, from, to)
		if err != nil {
			return err
		}
		f.enqueue(orders)
		from = to + 1
		f.next = from
	}
	f.head = head
	for id, block := range f.seen {
		if block+2*rereadBlocks < head {
			delete(f.seen, id)
		}
	}
	return nil
}

// enqueue adds the orders that are new.
func (f *follower) enqueue(orders []*order) {
	for _, o := range orders {
		if _, known := f.seen[o.id]; !known {
			o.notBefore = o.seen.Add(fillDelay)
			f.pending = append(f.pending, o)
		}
		f.seen[o.id] = o.block
	}
}

// solveDue solves the orders that are due and keeps the unfinished ones. After an order was paid it leaves the unpaid ones to the next
// call, and paid is set: claims must not wait for the fills of many orders, since unclaimed orders can be refunded once they expire.
func (f *follower) solveDue(ctx context.Context) (paid bool) {
	var kept []*order
	for _, o := range f.pending {
		unpaid := o.fill == nil
		if paid && unpaid || !f.process(ctx, o) {
			kept = append(kept, o)
		}
		paid = paid || unpaid && o.fill != nil
	}
	f.pending = kept
	return paid
}

// process solves an order if it is due. done is set if the order has ended, or was claimed, skipped, or rejected too often.
func (f *follower) process(ctx context.Context, o *order) (done bool) {
	if ctx.Err() != nil || time.Now().Before(o.notBefore) || o.block+f.Finality > f.head+1 {
		return false
	}
	log := f.log.With("chain", f.origin.ID, "order_id", o.id)
	reference, known, upToDate := f.feed.reference(o.id)
	if !known && (!upToDate || time.Since(o.seen) <= fillDelay+unknownOrderDelay) {
		// The feed contains an intent of this account before its order can be opened, so it only has to be read. Orders of other
		// accounts are filled as well, because every order pays its solver.
		return false
	}
	if known && reference == refundReference {
		log.Info("order is skipped", "reason", "its reference asks for a refund")
		return true
	}
	err := f.solve(ctx, o, log)
	if skipped, ok := errors.AsType[*skippedError](err); ok {
		log.Info("order is skipped", "reason", skipped.reason)
		return true
	}
	reason, refused := refusal(err)
	if refused && reason != "NotProven" { // the relay has yet to attest the fill
		o.refusals++
		o.notBefore = time.Now().Add(fillDelay << o.refusals)
		last := o.refusals == maxRefusals || f.JudgesOnce && o.fill == nil
		log.Warn("order was refused", "reason", reason, "error", err, "attempt", o.refusals, "last", last)
		return last
	}
	if err != nil { // the fill is not attested, or a chain is out of reach, and its own loop logs that
		o.notBefore = time.Now().Add(pollInterval)
		log.Debug("order is tried again", "error", err)
	}
	return err == nil
}

// refusal returns why a node or a contract rejected a call. refused is false for a transport error.
func refusal(err error) (reason string, refused bool) {
	if reverted, ok := errors.AsType[*revertedError](err); ok {
		return reverted.Error(), true
	}
	if data, ok := contracts.RevertData(err); ok {
		if name := contracts.ErrorName(data); name != "" {
			return name, true
		}
	}
	if answer, ok := errors.AsType[rpc.Error](err); ok {
		return answer.Error(), true
	}
	return "", false
}
