package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"intents.internal/core/chains/rpc/rpctest"
	"intents.internal/core/intent/chain"
	"intents.internal/core/intent/registry"
	definitions "intents.internal/core/intent/token"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/wire"
)

const (
	bridgeSettler       = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
	bridgeConfirmations = 2
)

// bridges are two scripted chains and the bridges between them.
type bridges struct {
	store   *postgres.Store
	known   *registry.Snapshot
	account uuid.UUID
	chains  [2]*rpctest.Chain
	ids     [2]caip.ChainID
	// nodes are each chain's providers in their order.
	nodes [2][]*rpctest.Node

	mu   sync.Mutex
	made []*bridge
	next [2][]step
	// forks are mined along with the chains, where there are any.
	forks [2]*rpctest.Chain
	// minedAt is when each block was mined, by its number.
	minedAt [2][]time.Time
}

// bridge is an intent and the blocks that have its order's events, 0 before they are mined. An order is refunded on the first chain and
// filled on the second.
type bridge struct {
	intent        *transfer.Intent
	refunded      bool
	opened, ended uint64
}

// way is what the bridge's events are in the end.
func (b *bridge) way() string {
	if b.refunded {
		return "created submitted confirmed refunded"
	}
	return "created submitted confirmed filled"
}

// step is a transaction of the next block.
type step struct {
	tx    rpctest.Tx
	block *uint64
}

// newBridges has chains with the ids first and first + 1, with so many providers each.
func newBridges(t *testing.T, db *database, first uint64, providers int) *bridges {
	t.Helper()
	store, err := postgres.Open(db.url, postgres.Options{AcquireTimeout: 10 * time.Second, LockTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	b := &bridges{store: store, account: uuid.New()}
	var entries []chain.Entry
	var tokens []definitions.Definition
	for n := range b.chains {
		number := first + uint64(n)
		b.ids[n] = caip.EIP155Chain(number)
		b.chains[n] = rpctest.NewChain(number)
		b.chains[n].SetTime(time.Now())
		b.chains[n].SetPeriod(0)
		b.minedAt[n] = []time.Time{time.Now()}
		entries = append(entries, chain.Entry{Chain: chain.Chain{
			ID: b.ids[n], Name: b.ids[n].String(), Environment: network.Test, NativeCurrency: chain.Currency{Name: "Ether", Symbol: "ETH", Decimals: 18},
			Domain: uint32(number), Confirmations: bridgeConfirmations, Finality: chain.Depth, BlockTime: 50 * time.Millisecond,
			Settler: &chain.Settler{Address: bridgeSettler, Scheme: chain.OrderDataScheme},
		}})
		tokens = append(tokens, definitions.Definition{ID: caip.AccountID{Chain: b.ids[n], Address: definitions.NativeAddress}, Symbol: "ETH", Decimals: 18})
		for range providers {
			b.nodes[n] = append(b.nodes[n], rpctest.Serve(t, b.chains[n]))
		}
	}
	silent := func(int) {}
	if _, err := store.ImportChains(t.Context(), entries, time.Now(), silent); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ImportTokens(t.Context(), tokens, time.Now(), silent); err != nil {
		t.Fatal(err)
	}
	for _, id := range b.ids {
		if err := store.KeepActive(t.Context(), id, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if b.known, err = store.Registry(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// add records a bridge and has its order opened in the next block. One in ten is refunded, the others are filled.
func (b *bridges) add(t *testing.T, n int) error {
	t.Helper()
	ctx := t.Context()
	leg := func(side int, account string) wire.Leg {
		return wire.Leg{
			Account: caip.AccountID{Chain: b.ids[side], Address: account},
			Token:   caip.AccountID{Chain: b.ids[side], Address: definitions.NativeAddress}, Amount: fmt.Sprint(n + 1),
		}
	}
	by := transfer.Caller{AccountID: b.account, KeyID: b.account, Environment: network.Test}
	intent, err := transfer.New(transfer.NewID(time.Now()), by, wire.TransferRequest{
		Source: leg(0, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"), Destination: leg(1, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
	}, b.known)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ { // Postgres may be restarting
		if _, err = b.store.InsertTransfer(ctx, intent, postgres.Idempotency{}); err == nil || attempt == 100 {
			break
		}
		pass(t, 50*time.Millisecond)
		if _, found := b.store.Transfer(ctx, b.account, intent.ID); found == nil {
			err = nil
			break
		}
	}
	if err != nil {
		return err
	}
	emit := func(topic common.Hash, indexed bool) rpctest.Tx {
		settler := common.HexToAddress(bridgeSettler)
		log := rpctest.Log{Address: settler, Topics: []common.Hash{topic}, Data: append(intent.OrderID[:], make([]byte, 64)...)}
		if indexed {
			log.Topics = append(log.Topics, intent.OrderID)
		}
		return rpctest.Tx{From: common.BigToAddress(intent.Source.Amount), To: &settler, Input: topic[:], Logs: []rpctest.Log{log}}
	}
	made := &bridge{intent: intent, refunded: n%10 == 0}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, made)
	b.next[0] = append(b.next[0], step{emit(transfer.SettlerTopics[0], true), &made.opened})
	if made.refunded {
		b.next[0] = append(b.next[0], step{emit(crypto.Keccak256Hash([]byte("Refunded(bytes32,address)")), false), &made.ended})
	} else {
		b.next[1] = append(b.next[1], step{emit(crypto.Keccak256Hash([]byte("Filled(bytes32,bytes,bytes)")), false), &made.ended})
	}
	return nil
}

// addMany adds bridges until ctx ends, or that many.
func (b *bridges) addMany(ctx context.Context, t *testing.T, count int, every time.Duration) error {
	t.Helper()
	for n := 0; n < count && ctx.Err() == nil; n++ {
		if err := b.add(t, n); err != nil {
			return err
		}
		pass(t, every)
	}
	return nil
}

// mine mines blocks until ctx ends.
func (b *bridges) mine(ctx context.Context) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		b.mineOnce()
	}
}

func (b *bridges) mineOnce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n, c := range b.chains {
		var txs []rpctest.Tx
		for _, s := range b.next[n] {
			txs, *s.block = append(txs, s.tx), uint64(len(b.minedAt[n]))
		}
		b.next[n], b.minedAt[n] = nil, append(b.minedAt[n], time.Now())
		c.Mine(txs...)
		if b.forks[n] != nil {
			b.forks[n].MineEmpty(1)
		}
	}
}

// mustEnd waits until every bridge has ended, and wants each to have gone by every step once.
func (b *bridges) mustEnd(t *testing.T) {
	t.Helper()
	for n, made := range b.made {
		asynctest.Eventually(t, "bridge "+fmt.Sprint(n)+" has ended", func() bool {
			stored, err := b.store.Transfer(t.Context(), b.account, made.intent.ID)
			return err == nil && strings.HasSuffix(made.way(), string(stored.Status))
		})
		var steps []string
		for _, e := range b.events(t, made) {
			steps = append(steps, string(e.To))
		}
		if got := strings.Join(steps, " "); got != made.way() {
			t.Errorf("bridge %d went %q, want %q", n, got, made.way())
		}
	}
}

func (b *bridges) events(t *testing.T, made *bridge) []transfer.Event {
	t.Helper()
	events, err := b.store.Events(t.Context(), b.account, made.intent.ID)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// A process that follows chains is killed again and again, at random moments, and Postgres is stopped without warning in between: every
// bridge ends as its settlers say, by every step once.
func TestWatcherKilled(t *testing.T) {
	t.Parallel()
	kills, count := 10, 200
	if full() {
		kills, count = 100, 1000
	}
	db := startDatabase(t, embedded.PostgresConfig{})
	b := newBridges(t, db, 31337, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	working.Go(func() { b.mine(ctx) })
	rpcFile := writeRPCFile(t, b)
	first := startWatcher(t, db.url, rpcFile)
	first.awaitChains(t, b) // what is older than the first look is not read
	first.process.Kill()
	added := make(chan error, 1)
	working.Go(func() {
		added <- b.addMany(ctx, t, count, time.Duration(kills)*150*time.Millisecond/time.Duration(count))
	})
	free := func() { db.execute(t, "UPDATE watched_chains SET lease_until = '-infinity'") } // instead of waiting for it
	free()
	for n := range kills {
		watcher := startWatcher(t, db.url, rpcFile)
		pass(t, time.Duration(50+rand.IntN(300))*time.Millisecond)
		watcher.process.Kill()
		if n%10 == 5 {
			if err := db.server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		free()
	}
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	startWatcher(t, db.url, rpcFile)
	b.mustEnd(t)
}
