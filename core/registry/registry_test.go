package registry_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
)

// snapshots compares what snapshots hold, their indexes aside.
var snapshots = cmpopts.IgnoreUnexported(registry.Snapshot{})

func TestRegistry(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	empty, err := store.Registry.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &registry.Snapshot{Version: 1, Chains: []registry.Chain{}, Tokens: []registry.Token{}}
	if diff := cmp.Diff(want, empty, snapshots); diff != "" {
		t.Errorf("empty registry differs (-want +got):\n%s", diff)
	}

	got := pgtest.LoadRegistry(t, store)
	far := caip.EIP155Chain(99000000001)
	wantFar := registry.Chain{
		ID: far, Name: "Far Testnet, whose number fits no 32 bits", Environment: network.Test,
		NativeCurrency: registry.Currency{Symbol: "FAR", Decimals: 9, Name: "Far"},
		Settlements: []registry.Settlement{{
			Scheme: registry.StandardOrder, Deployment: "test", InputSettler: "0x0000000000000000000000000000010000004242",
			OutputSettler: "0x0000000000000000000000000000020000004242", Oracle: "0x0000000000000000000000000000030000004242",
			ClaimPeriod: 4 * 60 * 60, Native: true, SameChain: true, OutputOracle: registry.DestinationOracle,
		}},
		Confirmations: 12, Finality: registry.Depth, BlockTime: 12 * time.Second,
	}
	gotFar, _ := got.Chain(far)
	if diff := cmp.Diff(wantFar, gotFar); diff != "" {
		t.Errorf("chain differs (-want +got):\n%s", diff)
	}
	usdc, err := caip.ParseAccountID(pgtest.SepoliaUSDC)
	if err != nil {
		t.Fatal(err)
	}
	wantUSDC := registry.Token{
		ID: usdc, Symbol: "USDC", Decimals: 6, Metadata: "https://example.com/usdc.svg",
		ERC3009: &registry.ERC3009{Name: "USDC", Version: "2", Form: registry.BytesForm}, EIP2612: &registry.EIP712Domain{Name: "USDC", Version: "2"},
	}
	gotUSDC, _ := got.Token(usdc)
	if diff := cmp.Diff(wantUSDC, gotUSDC); diff != "" {
		t.Errorf("token differs (-want +got):\n%s", diff)
	}
}

// The settlers and the oracle of a settlement stay known when an import replaces it.
func TestRegistry_RetiredContracts(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	one := func(n int) string {
		return fmt.Sprintf(`[{"inputSettler": "0xa%[1]d", "outputSettler": "0xb%[1]d", "oracle": "0xc%[1]d"}]`, n)
	}
	pgtest.Exec(t, store, `INSERT INTO chains (id, name, environment, currency_name, currency_symbol, currency_decimals, settlements)
		VALUES ('eip155:1', 'n', 'test', 'c', 'C', 18, $1)`, one(1))
	pgtest.Exec(t, store, `UPDATE chains SET settlements = $1 WHERE id = 'eip155:1'`, one(2))
	known := pgtest.LoadRegistry(t, store)
	for _, address := range []string{"0xa1", "0xb1", "0xc1", "0xa2", "0xb2", "0xc2"} {
		if !known.SettlementContract(caip.AccountID{Chain: caip.EIP155Chain(1), Address: address}) {
			t.Errorf("%s is not known", address)
		}
		if known.SettlementContract(caip.AccountID{Chain: caip.EIP155Chain(10), Address: address}) {
			t.Errorf("%s is known on another chain", address)
		}
	}
}

func TestRegistryVersion_EveryChange(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	version := pgtest.LoadRegistry(t, store).Version
	for _, statement := range []string{
		`UPDATE chains SET name = 'Renamed' WHERE id = 'eip155:1'`,
		`INSERT INTO chains (id, name, environment, currency_name, currency_symbol, currency_decimals, domain)
			VALUES ('eip155:7', 'n', 'test', 'c', 'C', 18, 7)`,
		`UPDATE tokens SET symbol = 'NEW' WHERE chain_id = 'eip155:1'`,
		`INSERT INTO tokens (chain_id, address, symbol, decimals) VALUES ('eip155:7', '0x', 'S', 1)`,
		`DELETE FROM tokens WHERE chain_id = 'eip155:7'`,
		`DELETE FROM chains WHERE id = 'eip155:7'`,
	} {
		pgtest.Exec(t, store, statement)
		next, _, err := store.Registry.RegistryVersion(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if next <= version {
			t.Errorf("%s: the version goes from %d to %d", statement, version, next)
		}
		version = next
	}
}

// A chain is watched while its lease is held, it was read within two minutes and it is not stopped.
func TestRegistryVersion_Watched(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	chain := caip.EIP155Chain(1)
	pgtest.Exec(t, store, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until) VALUES ('eip155:1', 'a', 1, now() + interval '1 hour')`)
	for _, c := range []struct {
		statement string
		watched   []caip.ChainID
	}{
		{`UPDATE watched_chains SET lease_until = lease_until`, nil}, // never read
		{`UPDATE watched_chains SET head_number = 9, confirmed_block = 8, final_block = 7, read_at = now()`, []caip.ChainID{chain}},
		{`UPDATE watched_chains SET read_at = now() - interval '125 seconds'`, nil},
		{`UPDATE watched_chains SET read_at = now() - interval '90 seconds'`, []caip.ChainID{chain}},
		{`UPDATE watched_chains SET stopped = 'a final block has changed'`, nil},
		{`UPDATE watched_chains SET stopped = NULL, lease_until = now() - interval '1 second'`, nil},
		{`UPDATE watched_chains SET lease_until = '-infinity'`, nil},
		{`UPDATE watched_chains SET lease_until = now() + interval '1 hour'`, []caip.ChainID{chain}},
	} {
		pgtest.Exec(t, store, c.statement)
		_, watched, err := store.Registry.RegistryVersion(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.watched, watched); diff != "" {
			t.Errorf("%s: %s", c.statement, diff)
		}
	}
}

// A transaction renames chains and tokens between the reading of the two.
func TestRegistry_OneSnapshot(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	before := pgtest.LoadRegistry(t, store)
	writer := pgtest.Lock(t, store, `LOCK TABLE tokens`)
	read := make(chan *registry.Snapshot, 1)
	go func() {
		snapshot, err := store.Registry.Registry(t.Context())
		if err != nil {
			t.Error(err)
		}
		read <- snapshot
	}()
	asynctest.Eventually(t, "the reader has the chains and waits for the tokens", func() bool {
		return pgtest.LookUp[bool](t, store, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FROM "tokens"%')`)
	})
	if _, err := writer.ExecContext(t.Context(), `UPDATE tokens SET symbol = 'NEW'; UPDATE chains SET name = 'New'`); err != nil {
		t.Fatal(err)
	}
	if err := writer.Commit(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, <-read, snapshots); diff != "" {
		t.Errorf("a snapshot of two moments (-want +got):\n%s", diff)
	}
}

func TestLiveRegistry_Changes(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	pgtest.LoadRegistry(t, store)
	live := runLive(t, store, slog.New(slog.DiscardHandler))
	before := live.Current()
	changed := time.Now()
	pgtest.Exec(t, store, `UPDATE chains SET name = 'Renamed' WHERE id = 'eip155:1'`)
	asynctest.Eventually(t, "the change is seen", func() bool {
		ethereum, _ := live.Current().Chain(caip.EIP155Chain(1))
		return ethereum.Name == "Renamed"
	})
	if took := time.Since(changed); took > 3*time.Second { // a second, and what a busy machine adds
		t.Errorf("it took %s to see a change", took)
	}
	if ethereum, _ := before.Chain(caip.EIP155Chain(1)); ethereum.Name != "Ethereum" {
		t.Errorf("an earlier snapshot changed: %q", ethereum.Name)
	}
}

// runLive runs a live registry until the test ends.
func runLive(t *testing.T, store *rooms.Rooms, log *slog.Logger) *registry.LiveRegistry {
	t.Helper()
	live, err := registry.NewLiveRegistry(t.Context(), store.Registry)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { live.Run(ctx, log) })
	t.Cleanup(func() { cancel(); work.Wait() })
	return live
}

func TestLiveRegistry_Outage(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := pgtest.Open(t, url)
	pgtest.LoadRegistry(t, direct)
	gate := pgtest.NewGate(t, url)
	var log asynctest.Buffer
	live := runLive(t, pgtest.Open(t, gate.URL), slog.New(slog.NewTextHandler(&log, nil)))
	before := live.Current()

	gate.Shut()
	pgtest.Exec(t, direct, `UPDATE chains SET name = 'Renamed' WHERE id = 'eip155:1'`)
	asynctest.Eventually(t, "the outage is noticed", func() bool { return strings.Count(log.String(), "background job fails") == 1 })
	if err := live.Refresh(t.Context()); !postgres.Unavailable(err) {
		t.Errorf("Refresh during the outage: %v", err)
	}
	refused := gate.Refused()
	asynctest.Eventually(t, "it goes on trying", func() bool { return gate.Refused() >= refused+2 })
	if live.Current() != before {
		t.Error("the snapshot changed during the outage")
	}
	gate.Heal()
	asynctest.Eventually(t, "the change made meanwhile is seen", func() bool {
		ethereum, _ := live.Current().Chain(caip.EIP155Chain(1))
		return ethereum.Name == "Renamed"
	})
	asynctest.Eventually(t, "the recovery is logged", func() bool { return strings.Count(log.String(), "background job succeeds again") == 1 })
	if n := strings.Count(log.String(), "background job fails"); n != 1 {
		t.Errorf("one outage is logged %d times", n)
	}
}

func TestLiveRegistry_StartWithoutDatabase(t *testing.T) {
	t.Parallel()
	if _, err := registry.NewLiveRegistry(t.Context(), pgtest.Open(t, pgtest.Closed(t)).Registry); !postgres.Unavailable(err) {
		t.Errorf("got %v", err)
	}
}
