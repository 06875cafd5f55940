package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"intents.internal/core/chain"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rpc/rpctest"
	definitions "intents.internal/core/token"
	"intents.internal/core/transfer"
	"intents.internal/pkg/asynctest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/embedded"
	"intents.internal/pkg/network"
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
	rpcFile string

	mu   sync.Mutex
	made []*transfer.Intent
	next [2][]rpctest.Tx
}

func newBridges(t *testing.T, db *database) *bridges {
	t.Helper()
	store, err := postgres.Open(db.url, postgres.Options{AcquireTimeout: 10 * time.Second, LockTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	b := &bridges{store: store, account: uuid.New(), rpcFile: filepath.Join(t.TempDir(), "rpc.json")}
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var entries []chain.Entry
	var tokens []definitions.Definition
	providers := map[string][]map[string]any{}
	for n := range b.chains {
		number := uint64(31337 + n) //nolint:gosec // 0 or 1
		b.ids[n] = caip.EIP155Chain(number)
		b.chains[n] = rpctest.NewChain(number)
		b.chains[n].SetTime(time.Now())
		b.chains[n].SetPeriod(0)
		entries = append(entries, chain.Entry{Chain: chain.Chain{
			ID: b.ids[n], Name: b.ids[n].String(), Environment: network.Test, NativeCurrency: chain.Currency{Name: "Ether", Symbol: "ETH", Decimals: 18},
			Domain: uint32(number), Confirmations: bridgeConfirmations, Finality: chain.Depth, BlockTime: 50 * time.Millisecond, //nolint:gosec // small
			Settler: &chain.Settler{Address: bridgeSettler, Scheme: chain.OrderDataScheme},
		}})
		tokens = append(tokens, definitions.Definition{ID: caip.AccountID{Chain: b.ids[n], Address: definitions.NativeAddress}, Symbol: "ETH", Decimals: 18})
		for range 2 {
			node := rpctest.Serve(t, b.chains[n])
			providers[b.ids[n].String()] = append(providers[b.ids[n].String()], map[string]any{"url": node.URL(), "requestsPerSecond": 10000})
		}
	}
	silent := func(int) {}
	if _, err := store.ImportChains(t.Context(), entries, time.Now(), silent); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ImportTokens(t.Context(), tokens, time.Now(), silent); err != nil {
		t.Fatal(err)
	}
	if b.known, err = store.Registry(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(providers)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.rpcFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// add records a bridge and has its order opened in the next block. One in ten is refunded, the others are filled.
func (b *bridges) add(ctx context.Context, n int) error {
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
		time.Sleep(50 * time.Millisecond)
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
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, intent)
	b.next[0] = append(b.next[0], emit(transfer.SettlerTopics[0], true))
	if n%10 == 0 {
		b.next[0] = append(b.next[0], emit(crypto.Keccak256Hash([]byte("Refunded(bytes32,address)")), false))
	} else {
		b.next[1] = append(b.next[1], emit(crypto.Keccak256Hash([]byte("Filled(bytes32,bytes,bytes)")), false))
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
		b.mu.Lock()
		for n, c := range b.chains {
			c.Mine(b.next[n]...)
			b.next[n] = nil
		}
		b.mu.Unlock()
	}
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
	b := newBridges(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	working.Go(func() { b.mine(ctx) })
	added := make(chan error, 1)
	working.Go(func() {
		for n := range count {
			if err := b.add(ctx, n); err != nil {
				added <- err
				return
			}
			time.Sleep(time.Duration(kills) * 150 * time.Millisecond / time.Duration(count))
		}
		added <- nil
	})
	watch := embedded.Command{
		Name: "core watch", Path: filepath.Join(shared.binaries, "core"), Args: []string{"watch"},
		Env: append(os.Environ(), "CORE_DATABASE_URL="+db.url, "CORE_OPS_LISTEN=127.0.0.1:0", "CORE_RPC_FILE="+b.rpcFile,
			"CORE_GATEWAY_SECRET="+secret, "CORE_CHAIN_TICK=100ms"),
	}
	free := func() { db.execute(t, "UPDATE watched_chains SET lease_until = '-infinity'") } // instead of waiting for it
	for n := range kills {
		watcher, err := embedded.StartProcess(watch)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(50+rand.IntN(300)) * time.Millisecond)
		watcher.Kill()
		<-watcher.Done()
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
	watcher, err := embedded.StartProcess(watch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { watcher.Kill() })
	for n, intent := range b.made {
		want := "created submitted confirmed filled"
		if n%10 == 0 {
			want = "created submitted confirmed refunded"
		}
		asynctest.Eventually(t, "bridge "+fmt.Sprint(n)+" has ended", func() bool {
			stored, err := b.store.Transfer(t.Context(), b.account, intent.ID)
			return err == nil && strings.HasSuffix(want, string(stored.Status))
		})
		events, err := b.store.Events(t.Context(), b.account, intent.ID)
		if err != nil {
			t.Fatal(err)
		}
		var steps []string
		for _, e := range events {
			steps = append(steps, string(e.To))
		}
		if got := strings.Join(steps, " "); got != want {
			t.Errorf("bridge %d went %q, want %q", n, got, want)
		}
	}
}
