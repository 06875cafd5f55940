package command_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

const (
	shipped       = "../../deploy/data/"
	defaultChains = shipped + "chains.json"
)

func importsChains(t *testing.T, database, file, want string) {
	t.Helper()
	if got := core(t, "", on(database), "chains", "import", file); got.Code != 0 || !strings.HasSuffix(got.Out, want+"\n") {
		t.Fatalf("import %s: %+v, want %q", file, got, want)
	}
}

func loaded(t *testing.T, store *rooms.Rooms) *registry.Snapshot {
	t.Helper()
	known, err := store.Registry.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// settlement is how an order from one chain's native asset to a token is executed, or the code with which its intent is rejected.
func settlement(t *testing.T, known *registry.Snapshot, env network.Environment, from, to caip.ChainID, tokenThere string) (s transfer.Settlement, deadline time.Time, code wire.Code) {
	t.Helper()
	const account = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	id := func(chain caip.ChainID, address string) caip.AccountID {
		return caip.AccountID{Chain: chain, Address: address}
	}
	request := wire.TransferRequest{
		Source:      wire.Leg{Account: id(from, account), Token: id(from, registry.NativeAddress), Amount: "2"},
		Destination: wire.Leg{Account: id(to, account), Token: id(to, tokenThere), Amount: "1"},
	}
	if wrong, found := transfer.WrongEnvironment(request, known, env); found {
		t.Fatalf("%s is not for a key of the environment %s", wrong.ID, env)
	}
	intent, err := transfer.New(transfer.NewID(time.Now()), transfer.Caller{Environment: env}, request, known)
	if rejection, ok := errors.AsType[*transfer.Rejection](err); ok {
		return s, deadline, rejection.Code
	}
	if err != nil {
		t.Fatal(err)
	}
	return intent.Settlement, intent.Deadline, ""
}

// A shipped file of settlements over the default lists makes swaps and bridges between its chains possible, with its contracts.
func TestImport_Settlements(t *testing.T) {
	t.Parallel()
	const input, output = "0x00fC00edbe7C003b006f870068c548940000223e", "0x75220B7600c300005038432a0000f308e0000068"
	for file, given := range map[string]struct {
		env              network.Environment
		imported, oracle string
		// bridges are between any two of the chains, swaps of the first one's native asset to a token.
		bridges []uint64
		token   string
	}{
		"settlements-lifi-mainnets.json": {
			network.Live, "chains: 9 added, 15 updated, 0 unchanged, 0 refused", "0x008C3800F3Ad9b3B662d002E90Cc00000000eE17",
			[]uint64{8453, 1, 10, 56, 130, 137, 143, 480, 1868, 4663, 42161, 42220, 43114, 57073},
			"0x4200000000000000000000000000000000000006",
		},
		"settlements-lifi-testnets.json": {
			network.Test, "chains: 0 added, 4 updated, 0 unchanged, 0 refused", "0xa70fE63Dd97e8e0Cb37241ed231FCBca87E99B72",
			[]uint64{84532, 421614, 11155111, 11155420},
			"0x4200000000000000000000000000000000000006",
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			database := pgtest.Database(t)
			store := pgtest.Open(t, database)
			importsChains(t, database, defaultChains, "chains: 36 added, 0 updated, 0 unchanged, 0 refused")
			if got := core(t, "", on(database), "tokens", "import", shipped+"tokens.json"); got.Code != 0 {
				t.Fatalf("%+v", got)
			}
			before := loaded(t, store)
			importsChains(t, database, shipped+file, given.imported)
			after := loaded(t, store)
			check := func(from, to uint64, tokenThere, oracle string) {
				t.Helper()
				if _, _, code := settlement(t, before, given.env, caip.EIP155Chain(from), caip.EIP155Chain(to), tokenThere); code != transfer.SettlerNotConfigured {
					t.Errorf("%d to %d before: %q", from, to, code)
				}
				got, deadline, code := settlement(t, after, given.env, caip.EIP155Chain(from), caip.EIP155Chain(to), tokenThere)
				want := transfer.Settlement{
					Scheme: "oif-v1/StandardOrder", Deployment: "lifi-v2", InputSettler: input, OutputSettler: output, InputOracle: oracle, OutputOracle: oracle,
					Expires: deadline.Add(48 * time.Hour),
				}
				if diff := cmp.Diff(want, got); diff != "" || code != "" {
					t.Errorf("%d to %d: %q (-want +got):\n%s", from, to, code, diff)
				}
			}
			for _, from := range given.bridges {
				for _, to := range given.bridges {
					if from != to {
						check(from, to, registry.NativeAddress, given.oracle)
					}
				}
			}
			check(given.bridges[0], given.bridges[0], given.token, output)
		})
	}
}

// The settlements of a file are checked on their chains before the file is imported.
func TestCheckChains_File(t *testing.T) {
	t.Parallel()
	const file = shipped + "settlements-lifi-testnets.json"
	database := pgtest.Database(t)
	store := pgtest.Open(t, database)
	importsChains(t, database, defaultChains, "chains: 36 added, 0 updated, 0 unchanged, 0 refused")
	list, err := registry.ReadChainList(strings.NewReader(readFile(t, file)))
	if err != nil || len(list.Chains) != 4 {
		t.Fatalf("%v, %+v", err, list)
	}
	nodes := map[string][]string{}
	_, live := node(t, 1)
	nodes["eip155:1"] = []string{live.URL()} // not in the file
	for _, entry := range list.Chains {
		number, _ := entry.ID.Number()
		_, served := node(t, number, entry.Settlements...)
		nodes[entry.ID.String()] = []string{served.URL()}
	}
	check := func(file string) result {
		t.Helper()
		return core(t, "", append(on(database), "CORE_RPC_FILE="+providersFile(t, nodes)), "chains", "check", file)
	}
	if got := check(file); got.Code != 0 || strings.Count(got.Out, "\n") != 5 {
		t.Errorf("with the contracts on all chains: %+v", got)
	}
	for _, c := range loaded(t, store).Chains {
		if len(c.Settlements) > 0 {
			t.Errorf("the check has stored a settlement on %s", c.ID)
		}
	}
	_, bare := node(t, 11155420)
	nodes["eip155:11155420"] = []string{bare.URL()}
	if got := check(file); got.Code != 1 || !strings.Contains(got.Out, "lifi-v2: no code at the oracle "+list.Chains[3].Settlements[0].Oracle) {
		t.Errorf("with no contract on OP Sepolia: %+v", got)
	}
	delete(nodes, "eip155:11155420")
	if got := check(file); got.Code != 1 || !strings.Contains(got.Out, "no providers, so its settlements are not checked\n") {
		t.Errorf("with nobody to ask about OP Sepolia: %+v", got)
	}
	broken := filepath.Join(t.TempDir(), "chains.json")
	if err := os.WriteFile(broken, []byte(`{"chains":[{"chainId":"eip155:10","name":"OP Mainnet"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := check(broken); got.Code != 1 || !strings.Contains(got.Out, "refused chain in row 0") || !strings.Contains(got.ErrOut, "1 rows would be refused") {
		t.Errorf("a broken row: %+v", got)
	}
	if got := check("nowhere.json"); got.Code != 1 || !strings.Contains(got.ErrOut, "nowhere.json") {
		t.Errorf("no file: %+v", got)
	}
}

// As many deployments as a chain may have are checked with as many requests as one.
func TestCheckChains_MostDeployments(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	row := func(n int) registry.Settlement {
		address := func(kind int) string {
			text, err := caip.ParseAddress(fmt.Sprintf("0x%038d%02d", kind, n))
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		return registry.Settlement{
			Scheme: registry.StandardOrder, Deployment: fmt.Sprintf("d%d", n), InputSettler: address(1), OutputSettler: address(2), Oracle: address(3),
		}
	}
	var rows []string
	var settlements []registry.Settlement
	for n := range registry.MaxSettlements {
		s := row(n)
		settlements = append(settlements, s)
		rows = append(rows, fmt.Sprintf(`{"scheme":%q,"deployment":%q,"inputSettler":%q,"outputSettler":%q,"oracle":%q}`,
			s.Scheme, s.Deployment, s.InputSettler, s.OutputSettler, s.Oracle))
	}
	requests := func(count int) int {
		t.Helper()
		_, served := node(t, 10, settlements...)
		file := filepath.Join(t.TempDir(), "chains.json")
		text := `{"chains":[{"chainId":"eip155:10","name":"OP","environment":"live","nativeCurrency":{"symbol":"ETH","decimals":18},"settlements":[` +
			strings.Join(rows[:count], ",") + `]}]}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		settings := append(on(database), "CORE_RPC_FILE="+providersFile(t, map[string][]string{"eip155:10": {served.URL()}}))
		if got := core(t, "", settings, "chains", "check", file); got.Code != 0 {
			t.Fatalf("%d deployments: %+v", count, got)
		}
		return served.Requests()
	}
	if one, most := requests(1), requests(registry.MaxSettlements); one != most {
		t.Errorf("%d requests for one deployment, %d for %d", one, most, registry.MaxSettlements)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
