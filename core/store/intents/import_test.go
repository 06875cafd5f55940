package intents_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/intent/chain"
	"intents.internal/core/intent/token"
	"intents.internal/core/store"
	"intents.internal/core/store/intents"
	"intents.internal/core/store/pgtest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

func entry(number uint64, change func(*chain.Entry)) chain.Entry {
	e := chain.Entry{Chain: chain.Chain{
		ID: caip.EIP155Chain(number), Name: fmt.Sprintf("Chain %d", number), Environment: network.Test,
		NativeCurrency: chain.Currency{Name: "Ether", Symbol: "ETH", Decimals: 18}, Domain: uint32(number),
		Confirmations: chain.DefaultConfirmations, Finality: chain.Depth, BlockTime: chain.DefaultBlockTime,
	}}
	if change != nil {
		change(&e)
	}
	return e
}

func importChains(t *testing.T, store *store.Rooms, entries ...chain.Entry) intents.Imported {
	t.Helper()
	imported, err := store.Intents.ImportChains(t.Context(), entries, pgtest.Now(), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return imported
}

func TestImportChains(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	settlerOfAlice := &chain.Settler{Address: pgtest.Alice, SameChain: true, Scheme: chain.OrderDataScheme}
	settlerOfBob := &chain.Settler{Address: pgtest.Bob, Scheme: chain.OrderDataScheme}
	settled := func(e *chain.Entry) { e.Settler = settlerOfAlice }
	steps := []struct {
		name    string
		entries []chain.Entry
		want    intents.Imported
		settler *chain.Settler // of chain 1 afterwards
	}{
		{"two new", []chain.Entry{entry(1, settled), entry(2, nil)}, intents.Imported{Added: 2}, settlerOfAlice},
		{"the same again", []chain.Entry{entry(1, settled), entry(2, nil)}, intents.Imported{}, settlerOfAlice},
		{"one new, one changed, one the same", []chain.Entry{
			entry(3, nil), entry(2, func(e *chain.Entry) { e.Name = "Renamed" }), entry(1, settled),
		}, intents.Imported{Added: 1, Updated: 1}, settlerOfAlice},
		{"a list that says nothing of settlers", []chain.Entry{
			entry(1, func(e *chain.Entry) { e.KeepSettler, e.Name = true, "Renamed" }),
		}, intents.Imported{Updated: 1}, settlerOfAlice},
		{"another settler", []chain.Entry{entry(1, func(e *chain.Entry) {
			e.Name, e.Settler = "Renamed", settlerOfBob
		})}, intents.Imported{Updated: 1}, settlerOfBob},
		{"the settler taken away", []chain.Entry{entry(1, func(e *chain.Entry) { e.Name = "Renamed" })}, intents.Imported{Updated: 1}, nil},
		{"every other column", []chain.Entry{entry(1, func(e *chain.Entry) {
			e.Name, e.Environment, e.Domain = "Renamed", network.Live, 4294967295
			e.NativeCurrency = chain.Currency{Name: "", Symbol: "WEI", Decimals: 0}
		})}, intents.Imported{Updated: 1}, nil},
	}
	for _, step := range steps {
		if diff := cmp.Diff(step.want, importChains(t, store, step.entries...)); diff != "" {
			t.Errorf("%s: counts differ (-want +got):\n%s", step.name, diff)
		}
		snapshot, err := store.Intents.Registry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range step.entries {
			got, _ := snapshot.Chain(e.ID)
			if e.KeepSettler {
				e.Settler = step.settler
			}
			if diff := cmp.Diff(e.Chain, got); diff != "" {
				t.Errorf("%s: chain %s differs (-want +got):\n%s", step.name, e.ID, diff)
			}
		}
		first, _ := snapshot.Chain(caip.EIP155Chain(1))
		if diff := cmp.Diff(step.settler, first.Settler); diff != "" {
			t.Errorf("%s: settler differs (-want +got):\n%s", step.name, diff)
		}
	}
}

// What a row leaves out stays as it is configured, each member by itself; a new chain has the defaults.
func TestImportChains_OperatorData(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	keepAll := func(e *chain.Entry) {
		e.KeepSettler, e.KeepConfirmations, e.KeepFinality, e.KeepBlockTime, e.KeepRPCURLs = true, true, true, true, true
	}
	type data struct {
		Confirmations uint64
		Finality      chain.Finality
		BlockTime     time.Duration
		RPCURLs       []string
	}
	urls := []string{"https://rpc.example.org/v1", `https://rpc.example.org/a,"{}\'b`}
	for _, step := range []struct {
		name   string
		change func(*chain.Entry)
		want   data
	}{
		{"a new chain", keepAll, data{12, chain.Depth, 12 * time.Second, nil}},
		{"all", func(e *chain.Entry) {
			e.Confirmations, e.Finality, e.BlockTime, e.RPCURLs = 10_000, chain.Finalized, 50*time.Millisecond, urls
		}, data{10_000, chain.Finalized, 50 * time.Millisecond, urls}},
		{"none", keepAll, data{10_000, chain.Finalized, 50 * time.Millisecond, urls}},
		{"confirmations", func(e *chain.Entry) {
			keepAll(e)
			e.KeepConfirmations, e.Confirmations = false, 1
		}, data{1, chain.Finalized, 50 * time.Millisecond, urls}},
		{"finality", func(e *chain.Entry) {
			keepAll(e)
			e.KeepFinality, e.Finality = false, chain.Safe
		}, data{1, chain.Safe, 50 * time.Millisecond, urls}},
		{"block time", func(e *chain.Entry) {
			keepAll(e)
			e.KeepBlockTime, e.BlockTime = false, 10*time.Minute
		}, data{1, chain.Safe, 10 * time.Minute, urls}},
		{"RPC URLs", func(e *chain.Entry) {
			keepAll(e)
			e.KeepRPCURLs, e.RPCURLs = false, urls[:1]
		}, data{1, chain.Safe, 10 * time.Minute, urls[:1]}},
		{"the RPC URLs taken away", func(e *chain.Entry) {
			keepAll(e)
			e.KeepRPCURLs = false
		}, data{1, chain.Safe, 10 * time.Minute, nil}},
	} {
		importChains(t, store, entry(1, step.change))
		snapshot, err := store.Intents.Registry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, _ := snapshot.Chain(caip.EIP155Chain(1))
		if diff := cmp.Diff(step.want, data{got.Confirmations, got.Finality, got.BlockTime, got.RPCURLs}); diff != "" {
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
	importChains(t, store, entry(1, nil), entry(2, func(e *chain.Entry) { e.Name = "Renamed" }))
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
		entries := make([]chain.Entry, chains)
		for i := range entries {
			number := uint64(i + 1)
			if n%2 == 1 {
				number = uint64(chains - i)
			}
			entries[i] = entry(number, func(e *chain.Entry) { e.Name = fmt.Sprintf("Chain of import %d", n) })
		}
		all.Go(func() {
			if _, err := store.Intents.ImportChains(t.Context(), entries, pgtest.Now(), func(int) {}); err != nil {
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
	broken := entry(7, func(e *chain.Entry) { e.Environment = "main" })
	if _, err := store.Intents.ImportChains(t.Context(), []chain.Entry{entry(6, nil), broken}, pgtest.Now(), func(int) {}); pgtest.RefusedBy(err) != pgtest.Check+"chains_environment_check" {
		t.Errorf("chains: %v", err)
	}
	if _, err := store.Intents.ImportTokens(t.Context(), []token.Definition{definition(1, 1), definition(404, 1)}, pgtest.Now(), func(int) {}); pgtest.RefusedBy(err) != pgtest.Foreign+"tokens_chain_id_fkey" {
		t.Errorf("tokens: %v", err)
	}
	after, err := store.Intents.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after, snapshots); diff != "" {
		t.Errorf("the registry changed (-want +got):\n%s", diff)
	}
}
