package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/intents"
	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
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
	definition registry.Chain
	// before is the chain's progress when the poll began.
	before watched.Progress
	head   evm.Block
	// start is the block after which a chain is read that is read for the first time.
	start uint64
	// confirmed is the newest block in which an effect confirms an intent, final the newest that counts as final.
	confirmed, final uint64
	// deep is confirmed by this provider alone.
	deep uint64
	// second is what another host shows of the same chain, empty while none answers, and passed the block up to which it has read too.
	second second
	passed uint64
	// fork is the newest known block that a reorganization left unchanged, nil for none. What is recorded above it must be found
	// again.
	fork *uint64
	// changed says which final block has changed, empty for none.
	changed string
	// readLast is set where the same host has read the chain in the last poll, and readTwice is the newest block that it has read in two polls
	// since the last reorganization.
	readLast  bool
	readTwice uint64
	// to is the last block whose events are read, toTime its time by the chain's clock.
	to     uint64
	toTime time.Time
	// flooded are the blocks of which not all events are read, see readFlooded.
	flooded []common.Hash
	// displaced are the recorded transactions whose blocks were read and do not have them any more, as a second provider shows too.
	displaced []intents.Followed
	// forkTime is the time of the fork by the chain's clock, zero if it is unknown.
	forkTime time.Time
	// anchors are the blocks to store for later comparison.
	anchors []transfer.Block
	// assigned are the effects that this poll has assigned, by their transactions: one payment confirms one intent of an account.
	assigned map[intents.Payment][]int64
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

// readFrom is the block after which the poll's provider reads: it need not read again what another host has read after it, nor, without a
// reorganization, what it has read in two polls.
func (v *view) readFrom() uint64 {
	from := v.cursor()
	if v.second.Number > 0 && v.readLast {
		from = max(from, v.passed)
	}
	if v.fork == nil {
		from = max(from, v.readTwice)
	}
	return from
}

// nextReadTwice is the newest block that the provider has read in two polls after this one, 0 after a reorganization.
func (v *view) nextReadTwice() uint64 {
	if v.fork != nil || !v.before.Read || !v.readLast {
		return 0
	}
	return max(v.readTwice, min(v.before.ReadTo, v.to))
}

// checkAbove is the block above which what is recorded may come from before a reorganization. Such transactions are checked when
// their block is read.
func (v *view) checkAbove() uint64 {
	if v.fork != nil || !v.before.Read {
		return v.cursor()
	}
	return v.before.ReadTo
}

// next is the chain's progress after this poll. The cursor passes a block only if an earlier poll has read it and another host after
// that, and if it is deep: so what one host leaves out or a reorganization changes is corrected.
func (v *view) next() watched.Progress {
	p := watched.Progress{
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
	default:
		if v.to < v.before.ReadTo { // this provider's ranges are smaller
			p.ReadTo, p.ReadTime = v.before.ReadTo, v.before.ReadTime
		}
		p.CompleteUntil = v.before.CompleteUntil
		if v.passed > p.Cursor {
			p.Cursor, p.CompleteUntil = v.passed, v.second.time
		}
		if read := v.before.ReadTime; p.CompleteUntil.After(read) && !read.IsZero() { // the lower of two hosts' times
			p.CompleteUntil = read
		}
	}
	return p
}

// tagsOf are the tags by which a chain's finality rule confirms and is final.
func tagsOf(f registry.Finality) []rpc.BlockID {
	switch f {
	case registry.Safe:
		return []rpc.BlockID{rpc.Safe, rpc.Finalized}
	case registry.Finalized:
		return []rpc.BlockID{rpc.Finalized, rpc.Finalized}
	default:
		return nil
	}
}

// readHead gets the newest block of one provider and compares the newest block of the previous poll. If that has changed, it
// finds the fork. A provider whose head is before it is used only where stepBack is set.
func (l *loop) readHead(ctx context.Context, definition registry.Chain, provider *rpc.Provider, before watched.Progress, stepBack bool) (*view, error) {
	v := &view{
		provider: provider, definition: definition, before: before, assigned: map[intents.Payment][]int64{}, readLast: l.reader == provider.Host(),
		read: bytesRead{most: l.pollBytes, perAccount: l.accountBytes},
	}
	if v.readLast {
		v.readTwice = min(l.readTwice, before.ReadTo)
	}
	known := rpc.Number(before.Head)
	others := slices.Compact(tagsOf(definition.Finality))
	if before.Read {
		others = append(others, known)
	}
	head, err := rpc.ReadHead(ctx, provider, others...)
	switch {
	case errors.Is(err, rpc.ErrMissing):
		return nil, errLags
	case err != nil:
		return nil, err
	case before.Read && head.Number < before.Head && (!stepBack || head.Number <= before.Cursor):
		return nil, &behindError{provider, head.Number}
	}
	v.head = head.Block
	if v.confirmed, v.final, err = v.depths(head); err != nil {
		return nil, err
	}
	v.deep = v.confirmed
	if before.Read {
		if err := l.compareKnown(ctx, v, head.Others[known]); err != nil || v.changed != "" {
			return v, err
		}
	}
	if err := l.readSecond(ctx, v); err != nil {
		return nil, err
	}
	if !before.Read {
		if v.start, err = l.findStart(ctx, v); err != nil {
			return nil, err
		}
	}
	v.anchors = append(v.anchors, transfer.Block{Number: head.Number, Hash: head.Hash})
	return v, nil
}

// behindError is errLags with the head of the provider.
type behindError struct {
	provider *rpc.Provider
	head     uint64
}

func (e *behindError) Error() string { return fmt.Sprintf("%s: it ends at block %d", errLags, e.head) }

func (e *behindError) Unwrap() error { return errLags }

// depths finds the confirmed and the final block by the chain's finality rule, as one provider shows the chain. A tag of the chain's only
// host counts at the chain's depth.
func (v *view) depths(h rpc.Head) (confirmed, final uint64, err error) {
	depth := func(n uint64) uint64 { return h.Number + 1 - min(n, h.Number+1) }
	confirmed, final = depth(v.definition.Confirmations), depth(2*v.definition.Confirmations)
	tags := tagsOf(v.definition.Finality)
	if tags == nil {
		return confirmed, final, nil
	}
	byConfirm, byFinal := h.Others[tags[0]], h.Others[tags[1]]
	if byConfirm == nil || byFinal == nil {
		return 0, 0, errNoTag
	}
	return byConfirm.Number, min(byFinal.Number, byConfirm.Number), nil
}

// limit confirms nothing that another host does not confirm too, except what is confirmed already.
func (v *view) limit(confirmed, final uint64) {
	v.confirmed = max(min(v.confirmed, confirmed), v.before.Confirmed)
	v.final = max(min(v.final, final), v.before.Final)
}

// compareKnown compares the newest known block that the provider may have. block is that of the previous poll's head, nil if the
// provider does not have it.
func (l *loop) compareKnown(ctx context.Context, v *view, block *evm.Block) error {
	anchors, err := l.Watched.Anchors(ctx, l.id, v.before.Head, 1)
	if err != nil {
		return ofStore(err)
	}
	if len(anchors) == 0 || anchors[0].Number != v.before.Head {
		// The chain was resumed: nothing above the cursor is trusted.
		cursor := v.before.Cursor
		v.fork = &cursor
		return nil
	}
	if v.head.Number < v.before.Head {
		if anchors, err = l.Watched.Anchors(ctx, l.id, v.head.Number, 1); err != nil || len(anchors) == 0 {
			return ofStore(err)
		}
		if block, err = rpc.Fetch(ctx, v.provider, rpc.BlockByNumber(rpc.Number(anchors[0].Number))); err != nil {
			return err
		}
	}
	known := anchors[0]
	switch {
	case block == nil:
		return errLags
	case block.Hash == known.Hash:
		return nil
	}
	of, err := l.hashOf(ctx, v, known, hashesAt)
	if err != nil {
		return err
	}
	if of.own.known && of.own.fact != known.Hash && of.believed(of.own.fact) {
		return l.findFork(ctx, v)
	}
	return l.undecided(v, of, known)
}

// hashOf is what the hosts show of the block at the number of a known one.
func (l *loop) hashOf(
	ctx context.Context, v *view, known transfer.Block, ask func(context.Context, *rpc.Provider, []transfer.Block) ([]shown[common.Hash], error),
) (of verdict[common.Hash], err error) {
	verdicts, err := testify(ctx, l.hosts, v.provider, []transfer.Block{known}, ask)
	if err != nil {
		return of, err
	}
	return verdicts[0], nil
}

// undecided is the error of a block about which the hosts disagree, or which the poll's provider alone shows.
func (l *loop) undecided(v *view, of verdict[common.Hash], known transfer.Block) error {
	if len(of.facts) < 2 {
		return errUnanswered
	}
	l.disagree(v.provider, "another provider has another block", known.Number)
	return fmt.Errorf("%w: they have another block %d than %s", errContradicted, known.Number, v.provider.Host())
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
		if errors.Is(err, rpc.ErrMissing) {                                               // a node that has pruned old blocks (EIP-4444) returns none, or an error
			block, err = nil, nil
		}
		return err != nil || block != nil && block.Time.After(before)
	})
	return uint64(max(next, 1) - 1), err
}
