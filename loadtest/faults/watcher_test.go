package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intents.internal/core/intents"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/loadtest/settler"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/wire"
)

// Processes that follow chains are killed again and again, at random moments, or suspended until another one has taken over, and Postgres
// is stopped without warning in between: every bridge ends as its settlers say, by every step once.
func TestWatcher_Killed(t *testing.T) {
	t.Parallel()
	rounds, count := times(9, 100), times(100, 1000)
	db := startDatabase(t, embedded.PostgresConfig{})
	b := newBridges(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	working.Go(func() { b.mine(ctx) })
	first := startWatcher(t, db, b)
	asynctest.Eventually(t, "both chains are followed", func() bool { return b.areFollowed(t, first) }) // earlier blocks are not read
	first.Kill()
	b.freeLeases(t)
	added := make(chan error, 1)
	working.Go(func() { added <- b.addMany(t, count, time.Duration(rounds)*200*time.Millisecond/time.Duration(count)) })
	var suspended *system.Process
	for n := range rounds {
		watcher := startWatcher(t, db, b)
		sleep(t, time.Duration(50+rand.IntN(300))*time.Millisecond)
		if suspended != nil {
			suspended.Signal(t, syscall.SIGCONT) // its leases are another's now
			sleep(t, time.Duration(50+rand.IntN(300))*time.Millisecond)
			suspended.Kill()
			suspended = nil
		}
		switch n % 3 {
		case 1:
			watcher.Signal(t, syscall.SIGSTOP)
			suspended = watcher
		case 2:
			watcher.Kill()
			if err := db.server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		default:
			watcher.Kill()
		}
		b.freeLeases(t)
	}
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	startWatcher(t, db, b)
	b.mustEnd(t)
}

// startWatcher starts core watch until the test ends.
func startWatcher(t *testing.T, db *database, b *bridges) *system.Process {
	t.Helper()
	w := &system.Process{}
	shared.PrepareService(t, w, embedded.Command{Path: "core", Args: []string{"watch"}}, func(_, ops string) []string {
		return []string{
			"CORE_DATABASE_URL=" + db.url, "CORE_OPS_LISTEN=" + ops, "CORE_RPC_FILE=" + b.rpcFile, "CORE_GATEWAY_SECRET=" + secret, "CORE_CHAIN_TICK=100ms",
		}
	})
	w.Start(t)
	return w
}

// areFollowed reports whether the process exports the heads of both chains, which only the one that follows them does.
func (b *bridges) areFollowed(t *testing.T, watcher *system.Process) bool {
	t.Helper()
	m, err := watcher.TryMetrics(t)
	return err == nil && m.Sum(fmt.Sprintf("intents_core_chain_head_block{chain=%q", b.ids[0])) > 0 &&
		m.Sum(fmt.Sprintf("intents_core_chain_head_block{chain=%q", b.ids[1])) > 0
}

const (
	bridgeInputSettler  = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
	bridgeOutputSettler = "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
	bridgeOracle        = "0x9fE46736679d2D9a65F0992F2272dE9f3c7fa6e0"
	bridgeConfirmations = 2
)

// bridges are two scripted chains with two providers each, and the bridges between them.
type bridges struct {
	db      *database
	store   *rooms.Rooms
	known   *registry.Snapshot
	account uuid.UUID
	chains  [2]*rpctest.Chain
	ids     [2]caip.ChainID
	rpcFile string

	mu   sync.Mutex
	made []*bridge
	next [2][]rpctest.Tx
}

// bridge is an intent. Its order is opened on the first chain, and refunded there or filled on the second.
type bridge struct {
	intent   *transfer.Intent
	refunded bool
}

// steps are the bridge's statuses in their order.
func (b *bridge) steps() string {
	if b.refunded {
		return "created submitted confirmed refunded"
	}
	return "created submitted confirmed filled"
}

func newBridges(t *testing.T, db *database) *bridges {
	t.Helper()
	store, err := rooms.Open(db.url, postgres.Options{AcquireTimeout: 10 * time.Second, LockTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	b := &bridges{db: db, store: store, account: uuid.New(), rpcFile: filepath.Join(t.TempDir(), "rpc.json")}
	var entries []registry.ChainEntry
	var tokens []registry.Token
	providers := map[string][]map[string]any{}
	for n := range b.chains {
		number := 31337 + uint64(n)
		b.ids[n] = caip.EIP155Chain(number)
		b.chains[n] = rpctest.NewChain(number)
		b.chains[n].SetTime(time.Now())
		b.chains[n].SetPeriod(0)
		entries = append(entries, registry.ChainEntry{Chain: registry.Chain{
			ID: b.ids[n], Name: b.ids[n].String(), Environment: network.Test, NativeCurrency: registry.Currency{Name: "Ether", Symbol: "ETH", Decimals: 18},
			Confirmations: bridgeConfirmations, Finality: registry.Depth, BlockTime: 50 * time.Millisecond,
			Settlements: []registry.Settlement{{
				Scheme: registry.StandardOrder, Deployment: "faults", InputSettler: bridgeInputSettler, OutputSettler: bridgeOutputSettler,
				Oracle: bridgeOracle, ClaimPeriod: registry.DefaultClaimPeriod, Native: true, OutputOracle: registry.DestinationOracle,
			}},
		}})
		tokens = append(tokens, registry.Token{ID: caip.AccountID{Chain: b.ids[n], Address: registry.NativeAddress}, Symbol: "ETH", Decimals: 18})
		for range 2 {
			providers[b.ids[n].String()] = append(providers[b.ids[n].String()], map[string]any{"url": rpctest.Serve(t, b.chains[n]).URL(), "requestsPerSecond": 10000})
		}
	}
	text, err := json.Marshal(providers)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.rpcFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	silent := func(int) {}
	_, chainsErr := store.Registry.ImportChains(t.Context(), entries, time.Now(), silent)
	_, tokensErr := store.Registry.ImportTokens(t.Context(), tokens, time.Now(), silent)
	known, err := store.Registry.Registry(t.Context())
	if err := errors.Join(chainsErr, tokensErr, err); err != nil {
		t.Fatal(err)
	}
	b.known = known
	for _, id := range b.ids {
		if err := store.Intents.KeepActive(t.Context(), id, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// add records a bridge and has its order opened in the next block. One in ten is refunded, the others are filled.
func (b *bridges) add(t *testing.T, n int) error {
	t.Helper()
	leg := func(side int, account string) wire.Leg {
		return wire.Leg{
			Account: caip.AccountID{Chain: b.ids[side], Address: account},
			Token:   caip.AccountID{Chain: b.ids[side], Address: registry.NativeAddress}, Amount: fmt.Sprint(n + 1),
		}
	}
	by := transfer.Caller{AccountID: b.account, KeyID: b.account, Environment: network.Test}
	intent, err := transfer.New(transfer.NewID(time.Now()), by, wire.TransferRequest{
		Source: leg(0, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"), Destination: leg(1, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
	}, b.known)
	if err != nil {
		return err
	}
	for range 100 { // Postgres may be restarting
		if _, err = b.store.Intents.InsertTransfer(t.Context(), intent, intents.Idempotency{}); err == nil {
			break
		}
		sleep(t, 50*time.Millisecond)
		if _, missing := b.store.Intents.Transfer(t.Context(), b.account, intent.ID); missing == nil {
			err = nil
			break
		}
	}
	if err != nil {
		return err
	}
	made := &bridge{intent: intent, refunded: n%10 == 0}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, made)
	b.next[0] = append(b.next[0], settler.Open(intent))
	if made.refunded {
		b.next[0] = append(b.next[0], settler.Refund(intent))
	} else {
		b.next[1] = append(b.next[1], settler.Fill(intent))
	}
	return nil
}

// addMany adds so many bridges.
func (b *bridges) addMany(t *testing.T, count int, every time.Duration) error {
	t.Helper()
	for n := range count {
		if err := b.add(t, n); err != nil {
			return err
		}
		sleep(t, every)
	}
	return nil
}

// mine mines blocks until ctx ends.
func (b *bridges) mine(ctx context.Context) {
	every(ctx, 50*time.Millisecond, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for n, c := range b.chains {
			c.Mine(b.next[n]...)
			b.next[n] = nil
		}
	})
}

// freeLeases ends the leases of all chains at once. A process that is suspended within a transaction keeps its chain's row locked until an
// operator ends the session.
func (b *bridges) freeLeases(t *testing.T) {
	t.Helper()
	const free = "UPDATE watched_chains SET lease_until = '-infinity'"
	b.db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "SET lock_timeout = '2s'"); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, free)
		if locked := (*pgconn.PgError)(nil); !errors.As(err, &locked) || locked.Code != "55P03" { // lock_not_available
			return err
		}
		_, err = conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction' OR wait_event = 'ClientWrite'")
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, free)
		return err
	})
}

// mustEnd waits until every bridge has ended, and checks that each has gone by every step once.
func (b *bridges) mustEnd(t *testing.T) {
	t.Helper()
	for n, made := range b.made {
		asynctest.Eventually(t, fmt.Sprintf("bridge %d has ended", n), func() bool {
			stored, err := b.store.Intents.Transfer(t.Context(), b.account, made.intent.ID)
			return err == nil && strings.HasSuffix(made.steps(), string(stored.Status))
		})
		events, err := b.store.Intents.Events(t.Context(), b.account, made.intent.ID)
		if err != nil {
			t.Fatal(err)
		}
		var steps []string
		for _, e := range events {
			steps = append(steps, string(e.To))
		}
		if got := strings.Join(steps, " "); got != made.steps() {
			t.Errorf("bridge %d went %q, want %q", n, got, made.steps())
		}
	}
}
