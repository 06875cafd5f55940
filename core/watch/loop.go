package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/screening"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/telemetry"
)

const (
	// idlePeriod is the time between two polls of a chain that no unfinished intent touches.
	idlePeriod = time.Minute
	// tickTimeout bounds one poll of a chain.
	tickTimeout = 2 * time.Minute
)

// loop follows one chain under one lease. Its methods are called by one goroutine.
type loop struct {
	*Watcher
	*hosts

	id      caip.ChainID
	lease   watched.Lease
	cancel  context.CancelFunc
	wake    chan struct{}
	metrics chainMetrics
	log     *slog.Logger
	// unreadSince is since when no second host has read the blocks that the cursor would pass, zero while one does.
	unreadSince time.Time
	failing     bool
	// unverified names the providers that serve another chain or whose chain ids could not be read. verified has the result of the
	// verification that runs, nil while none does.
	unverified error
	verified   <-chan error
	// disagreementLogs and unreadableLogs sample the lines about disagreements, and about attempts that no provider can show.
	disagreementLogs, unreadableLogs telemetry.Sampler
	// reader is the host of the last poll, and readTwice the newest block that it has read in two polls since the last reorganization.
	reader    string
	readTwice uint64
	// served is after which turn the next poll begins with the accounts that have due attempts.
	served intents.Turn
	// rereadAfter is after which turn the next poll begins with the accounts that have due failed attempts.
	rereadAfter intents.Turn
	// retryAt is when attempts that no provider can show are due again.
	retryAt map[intents.TransactionKey]time.Time
	// slowUntil is until when the transactions of an account are read after those of others.
	slowUntil map[uuid.UUID]time.Time
	// searches are for the transactions that have used the nonces of replaced attempts.
	searches map[usedNonce]*nonceSearch
}

func newLoop(w *Watcher, chain *rpc.Chain, lease watched.Lease, cancel context.CancelFunc) *loop {
	return &loop{
		Watcher: w, hosts: &hosts{chain: chain}, id: chain.ID(), lease: lease, cancel: cancel, wake: make(chan struct{}, 1),
		metrics: w.metrics.of(chain), log: w.Log.With("chain", chain.ID().String()),
		retryAt: map[intents.TransactionKey]time.Time{}, slowUntil: map[uuid.UUID]time.Time{}, searches: map[usedNonce]*nonceSearch{},
		disagreementLogs: telemetry.Sampler{Every: warnEvery}, unreadableLogs: telemetry.Sampler{Every: warnEvery},
	}
}

// run polls the chain until ctx ends or the lease is lost.
func (l *loop) run(ctx context.Context) {
	l.log.Info("following a chain", "epoch", l.lease.Epoch)
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beside.Go(func() { newRepairer(l).run(ctx) })
	for {
		started := time.Now()
		more, err := l.tick(ctx)
		l.metrics.tick(time.Since(started), err)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, watched.ErrLeaseLost) {
			l.log.Info("another process follows the chain now")
			return
		}
		l.logOutcome(err)
		if !more && !l.wait(ctx, started) {
			return
		}
	}
}

// logOutcome logs the first of several failures and the recovery.
func (l *loop) logOutcome(err error) {
	switch {
	case err != nil && !l.failing:
		l.log.Warn("chain cannot be read; trying again", "retry_every", l.period().String(), "error", err)
	case err == nil && l.failing:
		l.log.Info("chain is read again")
	}
	l.failing = err != nil
}

// warnEvery is the minimum time between two log lines about providers that disagree.
const warnEvery = time.Minute

// disagree records that a provider contradicts another one, or its earlier response.
func (l *loop) disagree(p *rpc.Provider, what string, block uint64) {
	l.metrics.disagreed(p)
	if _, due := l.disagreementLogs.Due(); !due {
		return
	}
	l.log.Warn("providers disagree; nothing is concluded from it", "host", p.Host(), "what", what, "block", block)
}

// wait returns true when the chain must be polled again, and false once ctx has ended. While no unfinished intent touches the
// chain it checks the database for one every Tick, because any core may have recorded it. Reports and new intents end the pause, but
// not before Tick: clients choose how many there are.
func (l *loop) wait(ctx context.Context, started time.Time) bool {
	next := started.Add(l.period())
	idleUntil, woken := started.Add(idlePeriod), false
	for {
		select {
		case <-ctx.Done():
			return false
		case <-l.wake:
			woken, next = true, started.Add(l.Tick)
			continue
		case <-time.After(time.Until(next)):
		}
		if woken || l.active(ctx) || !time.Now().Before(idleUntil) {
			return true
		}
		next = time.Now().Add(l.Tick)
	}
}

// active reports whether unfinished intents may touch the chain. On an error it returns true.
func (l *loop) active(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	active, err := l.Store.ChainActive(ctx, l.id)
	return err != nil || active
}

// period is a block's time, but at least Tick.
func (l *loop) period() time.Duration {
	c, _ := l.Registry.Current().Chain(l.id)
	return max(l.Tick, c.BlockTime)
}

// errNoProvider is returned where no provider of the chain can be used.
var errNoProvider = errors.New("no provider can be used")

// tick polls the chain once, at the best provider, and at the next one if that one lags, fails or is contradicted. more is true
// while unread blocks remain.
func (l *loop) tick(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tickTimeout)
	defer cancel()
	definition, known := l.Registry.Current().Chain(l.id)
	if !known {
		return false, errors.New("the chain is not in the registry any more")
	}
	progress, err := l.Watched.Progress(ctx, l.id)
	if err != nil {
		return false, err
	}
	l.metrics.stopped(progress.Stopped != "")
	if progress.Stopped != "" {
		return false, fmt.Errorf("the chain is stopped: %s; `core chains resume %s --from N` follows it again", progress.Stopped, l.id)
	}
	failures := l.verify(ctx)
	order := l.chain.Providers()
	if len(order) == 0 && failures == nil {
		failures = errNoProvider
	}
	furthest := behindError{}
	for n := 0; n < len(order); n++ {
		provider := order[n]
		more, err := l.poll(ctx, definition, provider, progress, provider == furthest.provider)
		if err == nil || errors.Is(err, watched.ErrLeaseLost) || ctx.Err() != nil || !isOfProvider(err) {
			return more, err
		}
		l.metrics.providerFailed(provider, err)
		l.chain.Demote(provider)
		failures = errors.Join(failures, fmt.Errorf("%s: %w", provider.Host(), err))
		if behind, ok := errors.AsType[*behindError](err); ok && furthest.head < behind.head {
			furthest = *behind
		}
		if n == len(l.chain.Providers())-1 && furthest.provider != nil {
			// Nobody has the newest known block: it was one provider's, or all lag. A step back concludes nothing.
			order = append(order[:n+1:n+1], furthest.provider)
		}
	}
	return false, failures
}

// verifyWait is how long a poll waits for the providers to be verified while fewer than two hosts are. Those that are not by then are not
// used by it.
const verifyWait = 500 * time.Millisecond

// verify verifies the providers beside the poll: one that does not answer delays nobody. The error names those that are known not to be
// usable.
func (l *loop) verify(ctx context.Context) error {
	if l.verified == nil {
		done := make(chan error, 1)
		l.verified = done
		go func() { done <- l.chain.Verify(context.WithoutCancel(ctx)) }() // each request of it has its time
	}
	wait := verifyWait
	if l.chain.Usable() > 1 {
		wait = 0
	}
	select {
	case failures := <-l.verified:
		l.verified = nil
		if failures != nil && l.unverified == nil {
			l.log.Warn("a provider is not used; `core chains check` shows the others", "error", failures)
		}
		l.unverified = failures
	case <-time.After(wait):
	}
	return l.unverified
}

// isOfProvider reports whether another provider may succeed. What Postgres refuses to store, a provider has shown.
func isOfProvider(err error) bool {
	_, ours := errors.AsType[storeError](err)
	return !ours || postgres.IsRowFault(err)
}

// storeError is an error of the database. Another provider would not help.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

func ofStore(err error) error {
	if err == nil {
		return nil
	}
	return storeError{err}
}

// poll reads the chain at one provider and writes the result.
func (l *loop) poll(ctx context.Context, definition registry.Chain, provider *rpc.Provider, progress watched.Progress, stepBack bool) (more bool, err error) {
	v, err := l.readHead(ctx, definition, provider, progress, stepBack)
	if err != nil {
		return false, err
	}
	if v.changed != "" {
		l.log.Error("a final block of the chain has changed; the chain is stopped", "reason", v.changed)
		l.metrics.stopped(true)
		return false, ofStore(l.Watched.Stop(ctx, l.lease, v.changed))
	}
	seen, err := l.readWindow(ctx, v)
	if err != nil {
		return false, err
	}
	attempts, err := l.readAttempts(ctx, v)
	if err != nil {
		return false, err
	}
	seen = merge(seen, attempts)
	revived, err := l.reviveReplaced(ctx, v)
	if err != nil {
		return false, err
	}
	if err := l.write(ctx, v, seen, append(v.gone(seen), revived...)); err != nil {
		return false, err
	}
	l.reader, l.readTwice = v.provider.Host(), v.nextReadTwice()
	if err := l.confirm(ctx, v); err != nil {
		return false, err
	}
	return v.to < v.head.Number, l.reread(ctx, v)
}

// merge adds attempts to the transactions from events. An order whose opening an event shows needs no receipt, but its sender is
// stored. A transaction that was found in two ways is written once.
func merge(events, attempts []intents.Observation) []intents.Observation {
	byKey := make(map[intents.TransactionKey]int, len(events))
	for n, o := range events {
		byKey[o.Key()] = n
	}
	for _, a := range attempts {
		n, known := byKey[a.Key()]
		if !known {
			byKey[a.Key()] = len(events)
			events = append(events, a)
			continue
		}
		events[n].Sender, events[n].Nonce = a.Sender, a.Nonce
	}
	return events
}

// writeBatch is how many transactions one database transaction writes.
const writeBatch = 500

// write writes the transactions in batches, and the cursor with the last one. After a crash between two batches the next poll
// finds the rest, and the fork, again.
func (l *loop) write(ctx context.Context, v *view, seen, gone []intents.Observation) error {
	next := v.next()
	transitions := 0
	writes := batches(seen, gone)
	for n, batch := range writes {
		if n == len(writes)-1 {
			batch.Fork, batch.Progress, batch.Anchors = v.fork, &next, v.anchors
		}
		events, err := l.writeChain(ctx, batch)
		if err != nil {
			return ofStore(err)
		}
		transitions += len(events)
	}
	if v.fork != nil {
		l.metrics.reorganized(v.before.Head - min(*v.fork, v.before.Head))
		l.log.Warn("the chain was reorganized", "fork", *v.fork, "head_before", v.before.Head, "transitions", transitions)
	}
	l.metrics.read(v, l.period())
	return nil
}

// writeChain writes under the lease of the chain, and records effects of listed accounts: what happens on chain is followed all the same.
func (l *loop) writeChain(ctx context.Context, write intents.ChainWrite) ([]transfer.Event, error) {
	write.Effect = func(i *transfer.Intent) {
		_ = l.Screening.Refused(ctx, screening.AboutIntent(screening.OnChain, i), l.Screening.CheckIntent(screening.OnChain, i))
	}
	return l.Store.WriteChain(ctx, l.lease, write)
}

// batches splits a poll's result, at least into one. Transactions of one intent stay together, because a transaction that is gone
// and another that is seen are one change of its status.
func batches(seen, gone []intents.Observation) []intents.ChainWrite {
	type transferKey struct{ account, transfer uuid.UUID }
	keyOf := func(o intents.Observation) transferKey { return transferKey{o.AccountID, o.TransferID} }
	all := slices.Concat(seen, gone)
	sizes := map[transferKey]int{}
	for _, o := range all {
		sizes[keyOf(o)]++
	}
	batchOf := make(map[transferKey]int, len(sizes))
	last, filled := 0, 0
	for _, o := range all {
		key := keyOf(o)
		if _, ok := batchOf[key]; ok {
			continue
		}
		if filled > 0 && filled+sizes[key] > writeBatch {
			last, filled = last+1, 0
		}
		batchOf[key] = last
		filled += sizes[key]
	}
	writes := make([]intents.ChainWrite, last+1)
	for n, o := range all {
		w := &writes[batchOf[keyOf(o)]]
		if n < len(seen) {
			w.Seen = append(w.Seen, o)
		} else {
			w.Gone = append(w.Gone, o)
		}
	}
	return writes
}
