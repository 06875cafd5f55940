package watch

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"intents.internal/core/chains/evm"
	"intents.internal/core/chains/rpc"
	"intents.internal/core/intent/chain"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/chains"
)

var (
	// errLags is returned for a provider whose head is below one that was seen before.
	errLags = errors.New("the provider lags behind the chain")
	// errContradicted is returned for a provider that shows other blocks than the other providers.
	errContradicted = errors.New("another provider shows other blocks")
	// errUnanswered is returned while none of the other providers answers, so that one alone would decide.
	errUnanswered = errors.New("no other provider answers, and one alone does not decide that blocks have changed")
	// errNoTag is returned for a provider without the block tag of the chain's finality rule.
	errNoTag = errors.New("the provider does not know the block tag that the chain's finality names; change finality with `core chains import`")
)

// view is the chain as one provider shows it in one poll.
type view struct {
	provider   *rpc.Provider
	definition chain.Chain
	// before is the chain's progress when the poll began.
	before chains.Progress
	head   evm.Block
	// start is the block after which a chain is read that is read for the first time.
	start uint64
	// confirmed is the newest block in which an effect confirms an intent, final the newest that counts as final.
	confirmed, final uint64
	// deep is confirmed by this provider alone.
	deep uint64
	// headRegressed means that the newest block of the previous poll is not on the chain, which ends before it.
	headRegressed bool
	// fork is the newest known block that a reorganization left unchanged, nil for none. What is recorded above it must be found
	// again.
	fork *uint64
	// changed says which final block has changed, empty for none.
	changed string
	// to is the last block whose events are read, toTime its time by the chain's clock.
	to     uint64
	toTime time.Time
	// displaced are the recorded transactions whose blocks were read and do not have them any more, as a second provider shows too.
	displaced []chains.Followed
	// forkTime is the time of the fork by the chain's clock, zero if it is unknown.
	forkTime time.Time
	// anchors are the blocks to store for later comparison.
	anchors []transfer.Block
	// assigned are the effects that this poll has assigned, by their transactions: one payment confirms one intent of an account.
	assigned map[chains.Payment][]int64
	// read is what the poll has read of transactions that clients have named.
	read bytesRead
}

// cursor is the newest block that is not read again.
func (v *view) cursor() uint64 {
	switch {
	case !v.before.Read:
		return v.start
	case v.fork != nil:
		return min(*v.fork, v.before.Cursor)
	default:
		return v.before.Cursor
	}
}

// checkAbove is the block above which what is recorded may come from before a reorganization. Such transactions are checked when
// their block is read.
func (v *view) checkAbove() uint64 {
	if v.fork != nil || !v.before.Read {
		return v.cursor()
	}
	return v.before.ReadTo
}

// next is the chain's progress after this poll. The cursor passes a block only if an earlier poll has read it too, in a backlog
// as well, and if it is deep: so the next poll corrects missing logs of a provider or a reorganization.
func (v *view) next() chains.Progress {
	p := chains.Progress{
		Read: true, Head: v.head.Number, Confirmed: v.confirmed, Final: v.final, Cursor: v.cursor(), ReadTo: v.to, ReadTime: v.toTime,
	}
	switch {
	case !v.before.Read:
	case v.fork != nil:
		if !v.forkTime.IsZero() && v.before.CompleteUntil.After(v.forkTime) {
			p.CompleteUntil = v.forkTime
		} else if !v.forkTime.IsZero() {
			p.CompleteUntil = v.before.CompleteUntil
		}
	case v.to < v.before.ReadTo: // this provider's ranges are smaller
		p.ReadTo, p.ReadTime, p.CompleteUntil = v.before.ReadTo, v.before.ReadTime, v.toTime
		p.Cursor = max(p.Cursor, min(v.confirmed, v.to))
	default:
		p.CompleteUntil = v.before.ReadTime
		p.Cursor = max(p.Cursor, min(v.confirmed, v.before.ReadTo))
	}
	return p
}

// readHead gets the newest block of one provider and compares the newest block of the previous poll. If that has changed, it
// finds the fork.
func (l *loop) readHead(ctx context.Context, definition chain.Chain, provider *rpc.Provider, before chains.Progress) (*view, error) {
	v := &view{provider: provider, definition: definition, before: before, assigned: map[chains.Payment][]int64{}}
	latest, known := rpc.BlockByNumber(rpc.Latest), rpc.BlockByNumber(rpc.Number(before.Head))
	safe, finalized := rpc.BlockByNumber(rpc.Safe), rpc.BlockByNumber(rpc.Finalized)
	calls := []rpc.Request{latest}
	if before.Read {
		calls = append(calls, known)
	}
	if definition.Finality == chain.Safe {
		calls = append(calls, safe)
	}
	if definition.Finality != chain.Depth {
		calls = append(calls, finalized)
	}
	if err := provider.Do(ctx, calls...); err != nil {
		return nil, err
	}
	head, err := latest.Result()
	if err != nil {
		return nil, err
	}
	if head == nil {
		return nil, errLags
	}
	v.head = *head
	if err := l.checkHead(ctx, v); err != nil {
		return nil, err
	}
	if err := v.depths(safe, finalized); err != nil {
		return nil, err
	}
	if before.Read {
		err = l.compareKnown(ctx, v, known)
	} else {
		v.start, err = l.findStart(ctx, v)
	}
	if err != nil {
		return nil, err
	}
	if err := l.compareDeep(ctx, v); err != nil {
		return nil, err
	}
	v.anchors = append(v.anchors, transfer.Block{Number: head.Number, Hash: head.Hash})
	return v, nil
}

// depths finds the confirmed and the final block by the chain's finality rule. They decrease only if the head steps back.
func (v *view) depths(safe, finalized *rpc.Call[*evm.Block]) error {
	depth := func(n uint64) uint64 { return v.head.Number + 1 - min(n, v.head.Number+1) }
	v.confirmed, v.final = depth(v.definition.Confirmations), depth(2*v.definition.Confirmations)
	if v.definition.Finality != chain.Depth {
		block, err := finalized.Result()
		if err != nil || block == nil {
			return errNoTag
		}
		v.final, v.confirmed = block.Number, block.Number
	}
	if v.definition.Finality == chain.Safe {
		block, err := safe.Result()
		if err != nil || block == nil {
			return errNoTag
		}
		v.confirmed = block.Number
	}
	if !v.headRegressed {
		v.confirmed, v.final = max(v.confirmed, v.before.Confirmed), max(v.final, v.before.Final)
	}
	v.deep = v.confirmed
	return nil
}

// compareKnown compares the newest known block.
func (l *loop) compareKnown(ctx context.Context, v *view, known *rpc.Call[*evm.Block]) error {
	anchors, err := l.Store.Anchors(ctx, l.id, v.before.Head, 1)
	if err != nil {
		return ofStore(err)
	}
	if len(anchors) == 0 || anchors[0].Number != v.before.Head {
		// The chain was resumed: nothing above the cursor is trusted.
		cursor := v.before.Cursor
		v.fork = &cursor
		return nil
	}
	if v.headRegressed {
		if v.head.Number < v.before.Final {
			v.changed = fmt.Sprintf("block %d counted as final, and most providers end at block %d", v.before.Final, v.head.Number)
			return nil
		}
		return l.findFork(ctx, v)
	}
	block, err := known.Result()
	switch {
	case err != nil:
		return err
	case block == nil:
		return errLags
	case block.Hash == anchors[0].Hash:
		return nil
	}
	agreed, err := l.crossCheckBlock(ctx, v, anchors[0], false)
	if err == nil && !agreed {
		err = l.unanswered(v.provider)
	}
	if err != nil {
		return err
	}
	return l.findFork(ctx, v)
}

// crossCheckBlock checks with other providers whether a block is on the chain, as the poll's provider says. One that agrees is
// enough; if one disagrees and none agrees, nothing is decided. A provider that lags or fails neither agrees nor disagrees.
func (l *loop) crossCheckBlock(ctx context.Context, v *view, b transfer.Block, onChain bool) (agreed bool, err error) {
	for _, other := range l.chain.Other(v.provider) {
		block, failure := rpc.Fetch(ctx, other, rpc.BlockByNumber(rpc.Number(b.Number)))
		switch {
		case failure != nil:
		case block == nil:
			l.metrics.lags(other)
		case (block.Hash == b.Hash) == onChain:
			l.othersDownSince = time.Time{}
			return true, nil
		default:
			err = fmt.Errorf("%w: %s has another block %d than %s", errContradicted, other.Host(), b.Number, v.provider.Host())
		}
	}
	if err != nil {
		l.disagree(v.provider, "another provider has another block", b.Number)
	}
	return false, err
}

// crossCheckStop checks with other providers that a final block has changed. A chain with several providers is never stopped by
// one of them alone, however long the others do not answer: they may answer again before an operator acts.
func (l *loop) crossCheckStop(ctx context.Context, v *view, b transfer.Block) error {
	v.changed = changedFinal(b)
	agreed, err := l.crossCheckBlock(ctx, v, b, false)
	if err == nil && !agreed && l.chain.HasOther(v.provider) {
		return fmt.Errorf("%s: %w", v.changed, errUnanswered)
	}
	return err
}

// compareDeep compares the newest known block that this poll confirms with other providers. A provider on its own fork
// contradicts nothing that was read before. Without the comparison the fork's blocks would count as read, and the end of the fork
// would look like a change of final blocks. While the block is contradicted nothing more is confirmed, and the next poll uses
// another provider.
func (l *loop) compareDeep(ctx context.Context, v *view) error {
	if v.changed != "" || v.fork != nil {
		return nil
	}
	anchors, err := l.Store.Anchors(ctx, l.id, v.confirmed, 1)
	if err != nil {
		return ofStore(err)
	}
	if len(anchors) == 0 || anchors[0] == l.compared {
		return nil
	}
	agreed, err := l.crossCheckBlock(ctx, v, anchors[0], true)
	switch {
	case err != nil:
		v.capConfirmed(0)
		l.chain.Demote(v.provider)
	case agreed:
		l.compared = anchors[0]
	case l.chain.HasOther(v.provider):
		return l.compareLagging(ctx, v)
	}
	return nil
}

// capConfirmed confirms nothing above a block, except what is confirmed already.
func (v *view) capConfirmed(above uint64) {
	v.confirmed = max(min(v.confirmed, above), v.before.Confirmed)
	v.final = max(min(v.final, above), v.before.Final)
}

// compareLagging confirms only blocks that a lagging provider shows too, at a depth below its own head. While no provider answers,
// nothing more is confirmed for a minute.
func (l *loop) compareLagging(ctx context.Context, v *view) error {
	for _, other := range l.chain.Other(v.provider) {
		head, failure := rpc.Fetch(ctx, other, rpc.BlockByNumber(rpc.Latest))
		if failure != nil || head == nil {
			continue
		}
		deep := head.Number + 1 - min(v.definition.Confirmations, head.Number+1)
		anchors, err := l.Store.Anchors(ctx, l.id, min(v.confirmed, deep), 1)
		if err != nil {
			return ofStore(err)
		}
		blocks, failure := blocksAt(ctx, other, anchors)
		if failure == nil && len(blocks) > 0 && blocks[0] != nil && blocks[0].Hash == anchors[0].Hash {
			v.capConfirmed(anchors[0].Number)
			return nil
		}
	}
	if l.unanswered(v.provider) != nil {
		v.capConfirmed(0)
	}
	return nil
}

// headSlack is how many blocks two honest providers' heads may differ, beside twice the depth of confirmed blocks.
const headSlack = 100

// checkHead compares the head that a provider shows with the newest block of the previous poll. A provider whose head is before it
// lags, unless most providers end before it. A head that is further ahead than the chain can have grown is checked with the others:
// were it believed, all others would lag for ever.
func (l *loop) checkHead(ctx context.Context, v *view) error {
	if v.before.Read && v.head.Number < v.before.Head {
		if v.headRegressed = l.mostAreBehind(ctx, v); !v.headRegressed {
			return errLags
		}
		return nil
	}
	slack := 2*v.definition.Confirmations + headSlack
	grown := uint64(0)
	if v.before.Read {
		elapsed := max(l.Store.Now().Sub(v.before.ReadAt), 0)
		grown = v.before.Head + 2*uint64(elapsed/max(v.definition.BlockTime, time.Millisecond))
	}
	if v.head.Number <= grown+slack {
		return nil
	}
	var contradicted error
	for _, other := range l.chain.Other(v.provider) {
		head, failure := rpc.Fetch(ctx, other, rpc.BlockByNumber(rpc.Latest))
		switch {
		case failure != nil, head == nil:
		case head.Number+slack >= v.head.Number:
			l.othersDownSince = time.Time{}
			return nil
		default:
			contradicted = fmt.Errorf("%w: %s ends at block %d and %s at block %d", errContradicted, other.Host(), head.Number, v.provider.Host(), v.head.Number)
		}
	}
	if contradicted != nil {
		l.disagree(v.provider, "its head is far ahead of the others", v.head.Number)
		return contradicted
	}
	return l.unanswered(v.provider)
}

// mostAreBehind reports whether the providers of most hosts, two at least, have ended before the known head for a minute: it was
// one provider's alone.
func (l *loop) mostAreBehind(ctx context.Context, v *view) bool {
	hosts, short := map[string]bool{}, map[string]bool{v.provider.Host(): true}
	for _, p := range l.chain.All() {
		hosts[p.Host()] = true
	}
	for _, other := range l.chain.Other(v.provider) {
		head, failure := rpc.Fetch(ctx, other, rpc.BlockByNumber(rpc.Latest))
		if failure == nil && head != nil && head.Number < v.before.Head {
			short[other.Host()] = true
		}
	}
	if len(short) < 2 || 2*len(short) <= len(hosts) {
		return false
	}
	if l.behindSince.IsZero() {
		l.behindSince = time.Now()
	}
	return time.Since(l.behindSince) >= singleProviderAfter
}

// findStart returns the block from which a new chain is read: before the oldest order that may have been opened without a report,
// otherwise the final block.
func (l *loop) findStart(ctx context.Context, v *view) (uint64, error) {
	created, ok, err := l.Store.OldestUnsent(ctx, l.id)
	if err != nil || !ok {
		return v.final, ofStore(err)
	}
	before := created.Add(-transfer.ClockSkew)
	next := sort.Search(int(v.final), func(n int) bool { //nolint:gosec // a block number
		if err != nil {
			return true
		}
		var block *evm.Block
		block, err = rpc.Fetch(ctx, v.provider, rpc.BlockByNumber(rpc.Number(uint64(n)))) //nolint:gosec // not negative
		// A node that has pruned old blocks returns none.
		return err != nil || block != nil && block.Time.After(before)
	})
	return uint64(max(next, 1) - 1), err
}
