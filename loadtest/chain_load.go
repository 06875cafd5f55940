package main

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/loadtest/settler"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// The accounts of all bridges.
const (
	chainSender    = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	chainRecipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
)

// liveBridge is a bridge that the measurement opened.
type liveBridge struct {
	*transfer.Intent
	source, destination *scriptedChain
	// seen has its statuses so far.
	seen map[transfer.Status]bool
}

// measure opens and fills bridges while core follows them.
func (b *chainBench) measure(ctx context.Context) error {
	for _, c := range b.chains { // the settlers report open orders as open and not filled
		settler.Answer(c.Chain, chainInputSettler, chainOutputSettler)
	}
	ctx, cancel := context.WithTimeout(ctx, b.duration+3*time.Minute)
	defer cancel()
	go b.mine(ctx)
	fmt.Printf("measuring for %s\n", b.duration)
	before, err := b.sample(ctx)
	if err != nil {
		return err
	}
	live, latencies := map[uuid.UUID]*liveBridge{}, map[transfer.Status][]time.Duration{}
	began, last, sent := time.Now(), int64(0), 0
	measured := chainSample{}
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		for ; time.Since(began) < b.duration && sent < int(time.Since(began).Seconds()*float64(b.rate)); sent++ {
			bridge, err := b.open(ctx, sent)
			if err != nil {
				return err
			}
			live[bridge.ID] = bridge
		}
		if last, err = b.readEvents(ctx, last, live, latencies); err != nil {
			return err
		}
		if measured.at.IsZero() && time.Since(began) > b.duration {
			if measured, err = b.sample(ctx); err != nil {
				return err
			}
		}
		if !measured.at.IsZero() && len(live) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d bridges have not ended in time", len(live), sent)
		case <-ticker.C:
		}
	}
	b.print(before, measured, sent, latencies)
	return nil
}

// open records a bridge and opens its order in the source chain's next block.
func (b *chainBench) open(ctx context.Context, n int) (*liveBridge, error) {
	source, destination := b.chainsOf(n)
	leg := func(c caip.ChainID, account string) wire.Leg {
		return wire.Leg{
			Account: caip.AccountID{Chain: c, Address: account}, Token: caip.AccountID{Chain: c, Address: registry.NativeAddress}, Amount: big.NewInt(int64(n) + 1).String(),
		}
	}
	by := transfer.Caller{AccountID: b.account, KeyID: b.account, Environment: network.Test}
	intent, err := transfer.New(transfer.NewID(time.Now()), by, wire.TransferRequest{
		Source: leg(source.id, chainSender), Destination: leg(destination.id, chainRecipient),
	}, b.known)
	if err != nil {
		return nil, err
	}
	if _, err := b.store.Intents.InsertTransfer(ctx, intent, intents.Idempotency{}); err != nil {
		return nil, err
	}
	source.send(settler.Open(intent))
	return &liveBridge{intent, source, destination, map[transfer.Status]bool{}}, nil
}

// overlap is how many events are read again: sequence numbers are assigned before the commit, so higher ones may be visible
// first.
const overlap = 2000

// readEvents reads the new transitions, fills confirmed orders and records the latency of each transition from the block that
// caused it.
func (b *chainBench) readEvents(ctx context.Context, last int64, live map[uuid.UUID]*liveBridge, latencies map[transfer.Status][]time.Duration) (int64, error) {
	rows, err := b.store.Pool().QueryContext(ctx, `SELECT id, transfer_id, to_status, coalesce(block_number, 0), occurred_at FROM events
		WHERE id > $1 AND trigger IS NOT NULL ORDER BY id`, last-overlap)
	if err != nil {
		return last, err
	}
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		var to transfer.Status
		var block uint64
		var at time.Time
		if err := rows.Scan(&last, &id, &to, &block, &at); err != nil {
			return last, err
		}
		bridge := live[id]
		if bridge == nil || bridge.seen[to] {
			continue
		}
		bridge.seen[to] = true
		chain, depth := bridge.source, uint64(1)
		if to == transfer.Confirmed {
			depth = chainConfirmations
			bridge.destination.send(settler.Fill(bridge.Intent))
		}
		if to == transfer.Filled {
			chain, depth = bridge.destination, 2*chainConfirmations
			delete(live, id)
		}
		if decided, ok := chain.minedAt(block + depth - 1); ok {
			latencies[to] = append(latencies[to], at.Sub(decided))
		}
	}
	return last, rows.Err()
}

// chainSample is core's usage and progress so far.
type chainSample struct {
	at                    time.Time
	cpu                   time.Duration
	resident              int64
	ticks, seconds, calls float64
}

func (b *chainBench) sample(ctx context.Context) (s chainSample, err error) {
	s.at = time.Now()
	pid := b.core.PID()
	if s.cpu, err = cpuTime([]int{pid}); err != nil {
		return s, err
	}
	if s.resident, err = resident(pid); err != nil {
		return s, err
	}
	for name, into := range map[string]*float64{
		"intents_core_chain_tick_seconds_count": &s.ticks, "intents_core_chain_tick_seconds_sum": &s.seconds, "intents_core_rpc_requests_total": &s.calls,
	} {
		if *into, err = readCounter(ctx, "http://"+b.ops+"/metrics", name); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (b *chainBench) print(before, after chainSample, sent int, latencies map[transfer.Status][]time.Duration) {
	elapsed := after.at.Sub(before.at)
	ticks := after.ticks - before.ticks
	fmt.Printf("\n%d chains, %d open intents, %d bridges in %s\n\n| figure | value |\n| --- | --- |\n", len(b.chains), b.intents, sent, elapsed.Round(time.Second))
	fmt.Printf("| core's share of one CPU | %.1f %% |\n", 100*(after.cpu-before.cpu).Seconds()/elapsed.Seconds())
	fmt.Printf("| core's memory at the start, at the end | %d, %d MiB |\n", before.resident>>20, after.resident>>20)
	fmt.Printf("| polls a chain and block time | %.3f |\n", ticks/float64(len(b.chains))/(elapsed.Seconds()/b.blockTime.Seconds()))
	fmt.Printf("| mean time of a poll | %.0f ms |\n", 1000*(after.seconds-before.seconds)/ticks)
	fmt.Printf("| calls a poll | %.2f |\n", (after.calls-before.calls)/ticks)
	for _, status := range []transfer.Status{transfer.Submitted, transfer.Confirmed, transfer.Filled} {
		list := latencies[status]
		slices.Sort(list)
		fmt.Printf("| %s after the block that decides it: median, p99, of %d | %s, %s |\n", status, len(list),
			percentile(list, 0.5).Round(10*time.Millisecond), percentile(list, 0.99).Round(10*time.Millisecond))
	}
}
