package watch

import (
	"context"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/evm"
	"intents.internal/core/rpc"
	"intents.internal/pkg/caip"
)

const (
	// reportQueue bounds the queued reports. The chain's next poll looks up those beyond it.
	reportQueue = 1024
	// reportWorkers bounds the concurrent look-ups.
	reportWorkers = 8
	// reportTimeout bounds the look-up of one report.
	reportTimeout = 3 * time.Second
)

// report is a transaction that a client has just reported.
type report struct {
	chain                 caip.ChainID
	accountID, transferID uuid.UUID
	hash                  common.Hash
}

// Reported has a reported transaction looked up at once, and its chain polled. Nodes may forget a transaction that is replaced a
// moment later, together with its sender and nonce, which are needed to find the replacement.
func (w *Watcher) Reported(chain caip.ChainID, accountID, transferID uuid.UUID, hash common.Hash) {
	select {
	case w.reports <- report{chain, accountID, transferID, hash}:
	default:
	}
}

// RunReports looks up reported transactions concurrently until ctx ends.
func (w *Watcher) RunReports(ctx context.Context) {
	var workers sync.WaitGroup
	for range reportWorkers {
		workers.Go(func() { w.lookUpReports(ctx) })
	}
	workers.Wait()
}

func (w *Watcher) lookUpReports(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-w.reports:
			if err := w.lookUpReport(ctx, r); err != nil && ctx.Err() == nil {
				w.warnOfReport(r, err)
			}
			w.Wake(r.chain)
		}
	}
}

// warnOfReport logs one failure a minute: clients choose what they report.
func (w *Watcher) warnOfReport(r report, err error) {
	if _, due := w.reportLogs.Due(); due {
		w.Log.Warn("reported transaction is not looked up at once; the next poll of the chain does", "chain", r.chain.String(), "error", err)
	}
}

// lookUpReport records the sender of a transaction that two hosts show, or the chain's only one. It leaves half of each provider's calls to the polls, which look up what it skips:
// clients choose how much they report.
func (w *Watcher) lookUpReport(ctx context.Context, r report) error {
	chain, ok := w.Client.Chain(r.chain)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	var err error
	shown := map[usedNonce]map[string]bool{}
	for _, provider := range chain.Providers() {
		if provider.Busy() {
			continue
		}
		var t *evm.Transaction
		if t, err = rpc.Fetch(ctx, provider, rpc.TransactionByHash(r.hash)); err != nil || t == nil || !t.UsesAccountNonce() {
			continue
		}
		of := usedNonce{t.From, t.Nonce}
		if shown[of] == nil {
			shown[of] = map[string]bool{}
		}
		if shown[of][provider.Host()] = true; len(shown[of]) > 1 || !chain.HasOther(provider) {
			return w.Store.SaveSender(ctx, r.accountID, r.transferID, r.chain, r.hash, t.From, t.Nonce)
		}
	}
	return err
}
