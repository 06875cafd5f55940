package registry_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

func entry(number uint64, change func(*registry.ChainEntry)) registry.ChainEntry {
	e := registry.ChainEntry{Chain: registry.Chain{
		ID: caip.EIP155Chain(number), Name: fmt.Sprintf("Chain %d", number), Environment: network.Test,
		NativeCurrency: registry.Currency{Name: "Ether", Symbol: "ETH", Decimals: 18},
		Confirmations:  registry.DefaultConfirmations, Finality: registry.Depth, BlockTime: registry.DefaultBlockTime,
	}}
	if change != nil {
		change(&e)
	}
	return e
}

func importChains(t *testing.T, store *rooms.Rooms, entries ...registry.ChainEntry) registry.Imported {
	t.Helper()
	imported, err := store.Registry.ImportChains(t.Context(), entries, pgtest.Now(), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return imported
}

// settlement is a deployment, whose contracts have addresses of their own.
func settlement(deployment string) registry.Settlement {
	contract := func(name string) string {
		return common.BytesToAddress(crypto.Keccak256([]byte(deployment + name))).Hex()
	}
	return registry.Settlement{
		Scheme: registry.StandardOrder, Deployment: deployment, InputSettler: contract("input settler"), OutputSettler: contract("output settler"),
		Oracle: contract("oracle"), ClaimPeriod: registry.DefaultClaimPeriod, SameChain: true, OutputOracle: registry.DestinationOracle,
	}
}

func TestImportChains(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	one, both := []registry.Settlement{settlement("one")}, []registry.Settlement{settlement("one"), settlement("two")}
	turned, changed := []registry.Settlement{settlement("two"), settlement("one")}, []registry.Settlement{settlement("one"), settlement("two")}
	changed[1].ClaimPeriod, changed[1].Native, changed[1].OutputOracle = 1, true, registry.OriginOracle
	changed[1].Signing = []wire.SigningScheme{wire.ERC3009}
	settled := func(s []registry.Settlement) func(*registry.ChainEntry) {
		return func(e *registry.ChainEntry) { e.Settlements = s }
	}
	steps := []struct {
		name        string
		entries     []registry.ChainEntry
		want        registry.Imported
		settlements []registry.Settlement // of chain 1 afterwards
	}{
		{"two new", []registry.ChainEntry{entry(1, settled(one)), entry(2, nil)}, registry.Imported{Added: 2}, one},
		{"the same again", []registry.ChainEntry{entry(1, settled(one)), entry(2, nil)}, registry.Imported{}, one},
		{"one new, one changed, one the same", []registry.ChainEntry{
			entry(3, nil), entry(2, func(e *registry.ChainEntry) { e.Name = "Renamed" }), entry(1, settled(one)),
		}, registry.Imported{Added: 1, Updated: 1}, one},
		{"a list that says nothing of settlements", []registry.ChainEntry{
			entry(1, func(e *registry.ChainEntry) { e.KeepSettlements, e.Name = true, "Renamed" }),
		}, registry.Imported{Updated: 1}, one},
		{"one more", []registry.ChainEntry{entry(1, settled(both))}, registry.Imported{Updated: 1}, both},
		{"both again", []registry.ChainEntry{entry(1, settled(both))}, registry.Imported{}, both},
		{"another order", []registry.ChainEntry{entry(1, settled(turned))}, registry.Imported{Updated: 1}, turned},
		{"every member but the contracts", []registry.ChainEntry{entry(1, settled(changed))}, registry.Imported{Updated: 1}, changed},
		{"none", []registry.ChainEntry{entry(1, settled(nil))}, registry.Imported{Updated: 1}, nil},
		{"none again", []registry.ChainEntry{entry(1, settled(nil))}, registry.Imported{}, nil},
		{"every other column", []registry.ChainEntry{entry(1, func(e *registry.ChainEntry) {
			e.Name, e.Environment = "Renamed", network.Live
			e.NativeCurrency = registry.Currency{Name: "", Symbol: "WEI", Decimals: 0}
		})}, registry.Imported{Updated: 1}, nil},
	}
	for _, step := range steps {
		if diff := cmp.Diff(step.want, importChains(t, store, step.entries...)); diff != "" {
			t.Errorf("%s: counts differ (-want +got):\n%s", step.name, diff)
		}
		snapshot, err := store.Registry.Registry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range step.entries {
			got, _ := snapshot.Chain(e.ID)
			if e.KeepSettlements {
				e.Settlements = step.settlements
			}
			if diff := cmp.Diff(e.Chain, got); diff != "" {
				t.Errorf("%s: chain %s differs (-want +got):\n%s", step.name, e.ID, diff)
			}
		}
		first, _ := snapshot.Chain(caip.EIP155Chain(1))
		if diff := cmp.Diff(step.settlements, first.Settlements); diff != "" {
			t.Errorf("%s: settlements differ (-want +got):\n%s", step.name, diff)
		}
	}
}

// Every settler of every deployment that a chain ever had is followed, and those of the other chains are not.
func TestImportChains_SettlersStay(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	a, b, c := settlement("a"), settlement("b"), settlement("c")
	c.InputSettler = a.InputSettler
	for _, settlements := range [][]registry.Settlement{{a, b}, {c}, nil} {
		importChains(t, store, entry(1, func(e *registry.ChainEntry) { e.Settlements = settlements }), entry(2, nil))
	}
	want := []common.Address{}
	for _, text := range []string{a.InputSettler, a.OutputSettler, b.InputSettler, b.OutputSettler, c.OutputSettler} {
		want = append(want, common.HexToAddress(text))
	}
	got, err := store.Intents.ChainSettlers(t.Context(), caip.EIP155Chain(1))
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b common.Address) bool { return a.Cmp(b) < 0 })); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if others, err := store.Intents.ChainSettlers(t.Context(), caip.EIP155Chain(2)); len(others) > 0 || err != nil {
		t.Errorf("of another chain: %v, %v", others, err)
	}
}

// Whatever becomes of a deployment, an intent keeps the contracts of its order.
func TestImportChains_IntentsStay(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	known, ann := pgtest.LoadRegistry(t, store), uuid.New()
	for _, body := range []string{pgtest.TransferBody, pgtest.SwapBody, pgtest.BridgeBody} {
		intent := pgtest.InsertTransfer(t, store, known, ann, body)
		order, err := intent.Order()
		if err != nil {
			t.Fatal(err)
		}
		for _, settlements := range [][]registry.Settlement{{settlement("test")}, {settlement("other")}, nil} {
			for _, c := range known.Chains {
				c.Settlements = settlements
				importChains(t, store, registry.ChainEntry{Chain: c})
			}
			stored, err := store.Intents.Transfer(t.Context(), ann, intent.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(intent, stored, pgtest.Amounts); diff != "" {
				t.Errorf("%s (-created +stored):\n%s", intent.Type, diff)
			}
			if again, err := stored.Order(); err != nil || !bytes.Equal(again.Encoded, order.Encoded) || again.ID() != stored.OrderID {
				t.Errorf("%s: the order is %x, %v; was %x", intent.Type, again.Encoded, err, order.Encoded)
			}
		}
	}
}

// What a row leaves out stays as it is configured, each member by itself; a new chain has the defaults.
func TestImportChains_OperatorData(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	keepAll := func(e *registry.ChainEntry) {
		e.KeepSettlements, e.KeepConfirmations, e.KeepFinality, e.KeepBlockTime, e.KeepRPCURLs, e.KeepWrappedNative = true, true, true, true, true, true
		e.KeepExplorer = true
	}
	type data struct {
		Confirmations uint64
		Finality      registry.Finality
		BlockTime     time.Duration
		RPCURLs       []string
		WrappedNative string
		Explorer      string
	}
	urls := []string{"https://rpc.example.org/v1", `https://rpc.example.org/a,"{}\'b`}
	for _, step := range []struct {
		name   string
		change func(*registry.ChainEntry)
		want   data
	}{
		{"a new chain", keepAll, data{12, registry.Depth, 12 * time.Second, nil, "", ""}},
		{"all", func(e *registry.ChainEntry) {
			e.Confirmations, e.Finality, e.BlockTime, e.RPCURLs, e.WrappedNative = 10_000, registry.Finalized, 50*time.Millisecond, urls, "WBNB"
			e.Explorer = "https://etherscan.io"
		}, data{10_000, registry.Finalized, 50 * time.Millisecond, urls, "WBNB", "https://etherscan.io"}},
		{"none", keepAll, data{10_000, registry.Finalized, 50 * time.Millisecond, urls, "WBNB", "https://etherscan.io"}},
		{"confirmations", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepConfirmations, e.Confirmations = false, 1
		}, data{1, registry.Finalized, 50 * time.Millisecond, urls, "WBNB", "https://etherscan.io"}},
		{"the default confirmations, which the block time gives", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepConfirmations, e.DefaultDepth, e.Confirmations = false, true, 12
		}, data{1200, registry.Finalized, 50 * time.Millisecond, urls, "WBNB", "https://etherscan.io"}},
		{"confirmations again", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepConfirmations, e.Confirmations = false, 1
		}, data{1, registry.Finalized, 50 * time.Millisecond, urls, "WBNB", "https://etherscan.io"}},
		{"finality", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepFinality, e.Finality = false, registry.Safe
		}, data{1, registry.Safe, 50 * time.Millisecond, urls, "WBNB", "https://etherscan.io"}},
		{"block time", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepBlockTime, e.BlockTime = false, 10*time.Minute
		}, data{1, registry.Safe, 10 * time.Minute, urls, "WBNB", "https://etherscan.io"}},
		{"RPC URLs", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepRPCURLs, e.RPCURLs = false, urls[:1]
		}, data{1, registry.Safe, 10 * time.Minute, urls[:1], "WBNB", "https://etherscan.io"}},
		{"the RPC URLs taken away", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepRPCURLs = false
		}, data{1, registry.Safe, 10 * time.Minute, nil, "WBNB", "https://etherscan.io"}},
		{"the wrapped coin", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepWrappedNative, e.WrappedNative = false, "WETH9"
		}, data{1, registry.Safe, 10 * time.Minute, nil, "WETH9", "https://etherscan.io"}},
		{"the usual one", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepWrappedNative = false
		}, data{1, registry.Safe, 10 * time.Minute, nil, "", "https://etherscan.io"}},
		{"the explorer", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepExplorer, e.Explorer = false, "https://eth.blockscout.com"
		}, data{1, registry.Safe, 10 * time.Minute, nil, "", "https://eth.blockscout.com"}},
		{"the explorer taken away", func(e *registry.ChainEntry) {
			keepAll(e)
			e.KeepExplorer = false
		}, data{1, registry.Safe, 10 * time.Minute, nil, "", ""}},
	} {
		importChains(t, store, entry(1, step.change))
		snapshot, err := store.Registry.Registry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, _ := snapshot.Chain(caip.EIP155Chain(1))
		if diff := cmp.Diff(step.want, data{got.Confirmations, got.Finality, got.BlockTime, got.RPCURLs, got.WrappedNative, got.Explorer}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestImport_UnchangedRows(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	const stamps = `SELECT string_agg(concat_ws(' ', id, created_at, updated_at), ', ' ORDER BY id) FROM chains`
	importChains(t, store, entry(1, nil), entry(2, nil))
	before := pgtest.LookUp[string](t, store, stamps)
	importChains(t, store, entry(1, nil), entry(2, nil))
	if diff := cmp.Diff(before, pgtest.LookUp[string](t, store, stamps)); diff != "" {
		t.Errorf("times differ (-want +got):\n%s", diff)
	}
	importChains(t, store, entry(1, nil), entry(2, func(e *registry.ChainEntry) { e.Name = "Renamed" }))
	if changed := pgtest.LookUp[string](t, store, `SELECT string_agg(id, ',') FROM chains WHERE updated_at > created_at`); changed != "eip155:2" {
		t.Errorf("updated_at moved on %s", changed)
	}
}

// Imports at once wait their turn, whatever order their rows come in.
func TestImport_Concurrent(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	const imports, chains = 8, 50
	var all sync.WaitGroup
	for n := range imports {
		entries := make([]registry.ChainEntry, chains)
		for i := range entries {
			number := uint64(i + 1)
			if n%2 == 1 {
				number = uint64(chains - i)
			}
			entries[i] = entry(number, func(e *registry.ChainEntry) { e.Name = fmt.Sprintf("Chain of import %d", n) })
		}
		all.Go(func() {
			if _, err := store.Registry.ImportChains(t.Context(), entries, pgtest.Now(), func(int) {}); err != nil {
				t.Errorf("import %d: %v", n, err)
			}
		})
	}
	all.Wait()
	if names := pgtest.LookUp[int](t, store, "SELECT count(DISTINCT name) FROM chains"); names != 1 {
		t.Errorf("the chains come from %d imports, want the last one's alone", names)
	}
}

func TestImport_Failure(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	before := pgtest.LoadRegistry(t, store)
	broken := entry(7, func(e *registry.ChainEntry) { e.Environment = "main" })
	if _, err := store.Registry.ImportChains(t.Context(), []registry.ChainEntry{entry(6, nil), broken}, pgtest.Now(), func(int) {}); pgtest.RefusedBy(err) != "23514 chains_environment_check" {
		t.Errorf("chains: %v", err)
	}
	if _, err := store.Registry.ImportTokens(t.Context(), []registry.Token{definition(1, 1), definition(404, 1)}, pgtest.Now(), func(int) {}); pgtest.RefusedBy(err) != "23503 tokens_chain_id_fkey" {
		t.Errorf("tokens: %v", err)
	}
	after, err := store.Registry.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after, snapshots); diff != "" {
		t.Errorf("the registry changed (-want +got):\n%s", diff)
	}
}
