package command_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/intent/chain"
	"intents.internal/core/intent/registry"
	"intents.internal/core/intent/token"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store"
	"intents.internal/core/store/pgtest"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

const (
	defaultChains   = "../../deploy/data/chains.json"
	testnetSettlers = "../../deploy/data/settlers-testnet.json"
	publishedRouter = "0xf614c6bF94b022E16BEF7dBecF7614FFD2b201d3"
)

// settlerChains are the chains of the file: Base, Arbitrum, Ethereum and OP Sepolia.
var settlerChains = []caip.ChainID{
	caip.EIP155Chain(84532), caip.EIP155Chain(421614), caip.EIP155Chain(11155111), caip.EIP155Chain(11155420),
}

// rejected is the code with which an intent between two chains is rejected, empty where it can be recorded.
func rejected(t *testing.T, known *registry.Snapshot, from, to caip.ChainID, toToken string) wire.Code {
	t.Helper()
	account := "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	request := wire.TransferRequest{
		Source: wire.Leg{
			Account: caip.AccountID{Chain: from, Address: account}, Token: caip.AccountID{Chain: from, Address: token.NativeAddress}, Amount: "2",
		},
		Destination: wire.Leg{
			Account: caip.AccountID{Chain: to, Address: account}, Token: caip.AccountID{Chain: to, Address: toToken}, Amount: "1",
		},
	}
	_, err := transfer.New(transfer.NewID(time.Now()), transfer.Caller{Environment: network.Test}, request, known)
	if rejection, ok := errors.AsType[*transfer.Rejection](err); ok {
		return rejection.Code
	}
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

func loaded(t *testing.T, store *store.Rooms) *registry.Snapshot {
	t.Helper()
	known, err := store.Intents.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func importsChains(t *testing.T, database, file, want string) {
	t.Helper()
	if got := core(t, "", on(database), "chains", "import", file); got.Code != 0 || !strings.HasSuffix(got.Out, want+"\n") {
		t.Fatalf("import %s: %+v, want %q", file, got, want)
	}
}

// The published settlers over the default list make bridges between their chains possible, and nothing else.
func TestImport_TestnetSettlers(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	store := pgtest.Open(t, database)
	importsChains(t, database, defaultChains, "chains: 36 added, 0 updated, 0 unchanged, 0 refused")
	if got := core(t, "", on(database), "tokens", "import", "../../deploy/data/tokens.json"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	before := loaded(t, store)
	for _, c := range before.Chains {
		if c.Settler != nil {
			t.Errorf("the default list has the settler %s on %s", c.Settler.Address, c.ID)
		}
	}
	importsChains(t, database, testnetSettlers, "chains: 0 added, 4 updated, 0 unchanged, 0 refused")
	after := loaded(t, store)
	const weth = "0x4200000000000000000000000000000000000006" // of OP Sepolia
	for _, from := range settlerChains {
		for _, to := range settlerChains {
			if from == to {
				continue
			}
			if got := rejected(t, before, from, to, token.NativeAddress); got != transfer.SettlerNotConfigured {
				t.Errorf("%s to %s before: %q", from, to, got)
			}
			if got := rejected(t, after, from, to, token.NativeAddress); got != "" {
				t.Errorf("%s to %s after: %s", from, to, got)
			}
		}
	}
	op, amoy := settlerChains[3], caip.EIP155Chain(80002)
	if swap, elsewhere := rejected(t, after, op, op, weth), rejected(t, after, op, amoy, token.NativeAddress); swap != transfer.SettlerNotConfigured || elsewhere != transfer.SettlerNotConfigured {
		t.Errorf("a swap %q, a bridge elsewhere %q", swap, elsewhere)
	}

	t.Log("of the chains only what the operator decides is changed, and the default list leaves that as it is")
	want := slices.Clone(before.Chains)
	for i, c := range want {
		if !slices.Contains(settlerChains, c.ID) {
			continue
		}
		want[i].Settler = &chain.Settler{Address: publishedRouter, Scheme: chain.OrderDataScheme}
		want[i].Confirmations = map[caip.ChainID]uint64{settlerChains[0]: 15, settlerChains[1]: 120, settlerChains[2]: 12, settlerChains[3]: 15}[c.ID]
		number, _ := c.ID.Number()
		if uint64(c.Domain) != number {
			t.Errorf("%s has the domain %d", c.ID, c.Domain)
		}
	}
	if diff := cmp.Diff(want, after.Chains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
	importsChains(t, database, defaultChains, "chains: 0 added, 0 updated, 36 unchanged, 0 refused")
}

// The settlers of a file are checked on their chains before the file is imported.
func TestCheckChains_File(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	store := pgtest.Open(t, database)
	importsChains(t, database, defaultChains, "chains: 36 added, 0 updated, 0 unchanged, 0 refused")
	_, base := node(t, 84532, publishedRouter, 84532)
	_, arbitrum := node(t, 421614, publishedRouter, 421614)
	_, sepolia := node(t, 11155111, publishedRouter, 11155111)
	_, op := node(t, 11155420, publishedRouter, 11155420)
	_, bare := node(t, 11155420, "", 0)
	_, live := node(t, 1, "", 0)
	check := func(file string, nodes map[string]string) result {
		t.Helper()
		providers := map[string][]string{}
		for id, url := range nodes {
			providers[id] = []string{url}
		}
		text, err := json.Marshal(providers)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "rpc.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return core(t, "", append(on(database), "CORE_RPC_FILE="+path), "chains", "check", file)
	}
	good := map[string]string{
		"eip155:84532": base.URL(), "eip155:421614": arbitrum.URL(), "eip155:11155111": sepolia.URL(), "eip155:11155420": op.URL(),
		"eip155:1": live.URL(), // not in the file
	}
	if got := check(testnetSettlers, good); got.Code != 0 || strings.Count(got.Out, "\n") != 5 {
		t.Errorf("with the settlers on all chains: %+v", got)
	}
	for _, c := range loaded(t, store).Chains {
		if c.Settler != nil {
			t.Errorf("the check has stored a settler on %s", c.ID)
		}
	}
	good["eip155:11155420"] = bare.URL()
	if got := check(testnetSettlers, good); got.Code != 1 || !strings.Contains(got.Out, "no code at the settler "+publishedRouter) {
		t.Errorf("with no contract on OP Sepolia: %+v", got)
	}
	delete(good, "eip155:11155420")
	if got := check(testnetSettlers, good); got.Code != 1 || !strings.Contains(got.Out, fmt.Sprintf("no providers, so the settler %s is not checked\n", publishedRouter)) {
		t.Errorf("with nobody to ask about OP Sepolia: %+v", got)
	}
	broken := filepath.Join(t.TempDir(), "chains.json")
	if err := os.WriteFile(broken, []byte(`{"chains":[{"chainId":"eip155:10","name":"OP Mainnet"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := check(broken, good); got.Code != 1 || !strings.Contains(got.Out, "refused chain in row 0") || !strings.Contains(got.ErrOut, "1 rows would be refused") {
		t.Errorf("a broken row: %+v", got)
	}
	if got := check("nowhere.json", good); got.Code != 1 || !strings.Contains(got.ErrOut, "nowhere.json") {
		t.Errorf("no file: %+v", got)
	}
}
