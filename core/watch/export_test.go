package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
)

// Loop follows one chain step by step.
type Loop struct {
	*loop

	repairer *repairer
}

func newTestLoop(l *loop) Loop { return Loop{l, newRepairer(l)} }

// Follow takes the lease of a chain without starting to read it.
func (w *Watcher) Follow(ctx context.Context, id caip.ChainID) (Loop, error) {
	chain, ok := w.Client.Chain(id)
	if !ok {
		return Loop{}, errors.New("no providers")
	}
	leases, err := w.Watched.AcquireLeases(ctx, []caip.ChainID{id}, nil, w.holder, leaseTTL)
	if err != nil || len(leases) == 0 {
		return Loop{}, errors.Join(err, watched.ErrLeaseLost)
	}
	return newTestLoop(newLoop(w, chain, leases[0], func() {})), nil
}

// Tick polls the chain once, and then compares the orders that are due.
func (l Loop) Tick(ctx context.Context) (more bool, err error) {
	if more, err = l.tick(ctx); err != nil {
		return more, err
	}
	return more, l.repairer.repair(ctx)
}

// DueAuthorizations has the next tick ask the tokens of signed transfers.
func (l Loop) DueAuthorizations() { l.repairer.authorizations.last = time.Time{} }

// Unleased is the loop of a chain without a lease: it cannot write.
func (w *Watcher) Unleased(id caip.ChainID) Loop {
	chain, _ := w.Client.Chain(id)
	return newTestLoop(newLoop(w, chain, watched.Lease{Chain: id}, func() {}))
}

// WaitAfterWake wakes the loop so long after a poll has started and waits for the next one.
func (l Loop) WaitAfterWake(ctx context.Context, after time.Duration) bool {
	started := time.Now()
	time.AfterFunc(after, func() {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	})
	return l.wait(ctx, started)
}

// LogsKept is how many logs are kept of the receipts of an intent's transactions.
func (l Loop) LogsKept(ctx context.Context, intent *transfer.Intent) (logs int, err error) {
	observed, err := l.Store.Transactions(ctx, intent.AccountID, intent.ID)
	if err != nil {
		return 0, err
	}
	var transactions []intents.Followed
	for _, t := range observed {
		transactions = append(transactions, intents.Followed{Observation: intents.Observation{AccountID: intent.AccountID, TransferID: intent.ID, Transaction: t}, Intent: intent})
	}
	v := &view{read: bytesRead{most: l.pollBytes, perAccount: l.accountBytes}}
	receipts, err := l.receipts(ctx, v, l.chain.Providers()[0], transactions)
	for _, r := range receipts {
		if r.Value != nil {
			logs += len(r.Value.Logs)
		}
	}
	return logs, err
}

// Lease is the loop's lease.
func (l Loop) Lease() watched.Lease { return l.lease }

// Hosts are the hosts of the providers, the preferred one first.
func (l Loop) Hosts() (names []string) {
	for _, p := range l.chain.Providers() {
		names = append(names, p.Host())
	}
	return names
}

// Demote has the next poll use another provider than the last one did.
func (l Loop) Demote() { l.chain.Demote(l.chain.Providers()[0]) }

// SetOthersDown makes a second provider have been down for long.
func (l Loop) SetOthersDown() {
	l.othersDownSince, l.unreadSince = l.othersDownSince.Add(-singleProviderAfter), l.unreadSince.Add(-singleProviderAfter)
}

// The errors of a poll.
var (
	ErrLags         = errLags
	ErrMissingLogs  = errMissingLogs
	ErrContradicted = errContradicted
	ErrNoTag        = errNoTag
	ErrUnanswered   = errUnanswered
)

// Batches are the writes of one poll.
func Batches(seen, gone []intents.Observation) []intents.ChainWrite { return batches(seen, gone) }

// Share divides the chains once, and runs the loops of those that the watcher takes until running is done.
func (w *Watcher) Share(ctx context.Context, running *sync.WaitGroup) { w.share(ctx, running) }

// SetLookUpsPerDay bounds the look-ups of each account and chain.
func (w *Watcher) SetLookUpsPerDay(n int) { w.lookUpRule.Rate, w.lookUpRule.Burst = n, n }

// SetAccountBytes bounds what a poll reads of the transactions that an account has named.
func (w *Watcher) SetAccountBytes(n int) { w.accountBytes = n }

// SetPollBytes bounds what a poll reads of the transactions that all accounts have named.
func (w *Watcher) SetPollBytes(n int) { w.pollBytes = n }

// Holder is the watcher's name in leases.
func (w *Watcher) Holder() string { return w.holder }

// Owner is the one of holders in whose share a chain is.
func Owner(chain caip.ChainID, holders ...string) string {
	alive := map[string][]string{}
	for _, h := range holders {
		alive[h] = []string{chain.String()}
	}
	return ownerOf(chain.String(), alive)
}
