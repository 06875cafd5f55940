package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/evm"
	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/transfer"
)

// second is what another host shows of the chain in a poll.
type second struct {
	rpc.Head
	// logs are its events of the blocks that the cursor passes, and time is the time of the last of them.
	logs []evm.Log
	time time.Time
}

// headSlack is how many blocks two honest providers' heads may differ, beside twice the depth of confirmed blocks.
const headSlack = 100

// readSecond reads the chain at another host: its head, its tags, and the events of the blocks that the cursor passes. Only what both
// hosts confirm is confirmed, and the cursor passes only what another host has read after the poll's. The only host of a chain has read
// it twice. A provider on its own fork contradicts nothing that was read before: while another host contradicts it, nothing more is
// confirmed, and the next poll uses another provider.
func (l *loop) readSecond(ctx context.Context, v *view) error {
	if !l.chain.HasOther(v.provider) {
		return l.passAlone(ctx, v)
	}
	slack := 2*v.definition.Confirmations + headSlack
	var best uint64
	answered, contradicted := false, false
	others := l.chain.Other(v.provider)
	for n, other := range others {
		p := patience{of: other, last: n == len(others)-1}
		head, failure := p.readHead(ctx, v.definition.Finality)
		if failure != nil {
			continue
		}
		answered, best = true, max(best, head.Number)
		if head.Number+slack < v.head.Number {
			l.metrics.lags(other)
			continue
		}
		err := l.readPassed(ctx, v, p, head)
		switch {
		case err == nil:
			l.othersDownSince, l.unreadSince = time.Time{}, time.Time{}
			return nil
		case errors.Is(err, errContradicted):
			contradicted = true
		default:
			if _, ours := errors.AsType[storeError](err); ours {
				return err
			}
		}
	}
	switch {
	case contradicted:
		l.disagree(v.provider, "another provider has another block", v.head.Number)
		l.chain.Demote(v.provider)
	case answered && best+slack < v.head.Number:
		l.disagree(v.provider, "its head is far ahead of the others", v.head.Number)
		return fmt.Errorf("%w: they end at block %d and %s at block %d", errContradicted, best, v.provider.Host(), v.head.Number)
	case l.unreadSince.IsZero():
		l.unreadSince = time.Now()
	case time.Since(l.unreadSince) >= singleProviderAfter:
		return l.passAlone(ctx, v)
	}
	if !v.before.Read {
		return errUnanswered
	}
	if contradicted || !answered {
		v.limit(0, 0)
	}
	return nil
}

// patience is how long a poll waits for each answer of another host: briefly, unless it is the last that can be asked.
type patience struct {
	of   *rpc.Provider
	last bool
}

func (p patience) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.last {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, p.of.Patience())
}

func (p patience) readHead(ctx context.Context, rule registry.Finality) (rpc.Head, error) {
	ctx, cancel := p.context(ctx)
	defer cancel()
	return rpc.ReadHead(ctx, p.of, slices.Compact(tagsOf(rule))...)
}

func (p patience) readEvents(ctx context.Context, l *loop, settlers []common.Address, from, limit uint64) ([]evm.Log, *evm.Block, error) {
	ctx, cancel := p.context(ctx)
	defer cancel()
	logs, last, _, err := l.readEvents(ctx, p.of, settlers, from, limit)
	return logs, last, err
}

// passAlone has the cursor pass what the poll's provider has read, and reads again in this poll, where there is no other host.
func (l *loop) passAlone(ctx context.Context, v *view) error {
	depth := v.head.Number + 1 - min(v.definition.Confirmations, v.head.Number+1)
	v.confirmed, v.final = min(v.confirmed, depth), min(v.final, depth)
	v.limit(v.confirmed, v.final)
	last, err := l.target(ctx, v, v.confirmed)
	if err != nil || last == nil {
		return err
	}
	v.pass(last, second{time: last.Time})
	return nil
}

// target is the block up to which the cursor can move in this poll, as the poll's provider shows it, nil if it cannot. It is deep, and an earlier
// poll has read it.
func (l *loop) target(ctx context.Context, v *view, confirmed uint64) (*evm.Block, error) {
	to := min(confirmed, v.before.ReadTo) // below the newest known block, which has not changed
	if !v.before.Read || v.fork != nil || to <= v.cursor() {
		return nil, nil //nolint:nilnil // there is none
	}
	block, err := rpc.Fetch(ctx, v.provider, rpc.BlockByNumber(rpc.Number(to)))
	if err == nil && block == nil {
		err = errLags
	}
	return block, err
}

// pass has the cursor pass a block, which is an anchor from then on.
func (v *view) pass(last *evm.Block, by second) {
	v.passed, v.second = last.Number, by
	v.anchors = append(v.anchors, transfer.Block{Number: last.Number, Hash: last.Hash})
}

// readPassed reads the blocks that the cursor passes at another host, up to what both confirm.
func (l *loop) readPassed(ctx context.Context, v *view, by patience, head rpc.Head) error {
	confirmed, final, err := v.depths(head)
	if err != nil {
		return err
	}
	if head.Number+v.definition.Confirmations < v.head.Number {
		l.metrics.lags(by.of)
	}
	target, err := l.target(ctx, v, min(v.confirmed, confirmed))
	v.limit(confirmed, final)
	if err != nil || target == nil {
		return err
	}
	settlers, err := l.Store.ChainSettlers(ctx, l.id)
	if err != nil {
		return ofStore(err)
	}
	shown := second{Head: head}
	for from := v.cursor() + 1; from <= target.Number; {
		logs, last, err := by.readEvents(ctx, l, settlers, from, target.Number)
		if err != nil {
			return err
		}
		if last.Number == target.Number && last.Hash != target.Hash {
			return fmt.Errorf("%w: %s has another block %d", errContradicted, by.of.Host(), last.Number)
		}
		shown.logs, shown.time, from = append(shown.logs, logs...), last.Time, last.Number+1
	}
	v.pass(target, shown)
	return nil
}
