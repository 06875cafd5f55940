package command_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

var (
	getFillRecord = rpctest.NewSelector("getFillRecord(bytes32,bytes32)")
	isProven      = rpctest.NewSelector("isProven(uint256,bytes32,bytes32,bytes32)")
	// invalidNativeValue is how a settler answers that takes the native token, and noNative one that does not.
	invalidNativeValue = append(rpctest.Revert(crypto.Keccak256([]byte("InvalidNativeValue(uint256,uint256)"))[:4]), append(rpctest.Word(1), rpctest.Word(0)...)...)
	noNative           = rpctest.Revert{0xfb, 0xc1, 0xd8, 0xe2} // CodeSize0()
)

// The errors of a settler that takes both schemes of signing and compares balances.
var (
	unpaidPermit2 = rpctest.Revert(hexutil.MustDecode("0x08c379a0" + strings.Repeat("0", 62) + "20" + strings.Repeat("0", 62) + "14" +
		common.Bytes2Hex([]byte("TRANSFER_FROM_FAILED")) + strings.Repeat("0", 24)))
	invalidSigner       = rpctest.Revert(crypto.Keccak256([]byte("InvalidSigner()"))[:4])
	invalidBalanceDelta = append(rpctest.Revert(crypto.Keccak256([]byte("InvalidBalanceDelta(uint256,uint256)"))[:4]), append(rpctest.Word(1), rpctest.Word(0)...)...)
)

// opensFor has openFor of a contract answer to the user's signatures for Permit2, to those of others, and to ERC-3009; nil is success.
func opensFor(t *testing.T, served *rpctest.Chain, id uint64, contract string, permit2, forged, erc3009 error) {
	t.Helper()
	r := *recorded(t)
	r.Chain.ChainID = int64(id)
	address := common.HexToAddress(contract)
	served.SetFunction(address, openFor, func(c rpctest.Call) ([]byte, error) {
		given, err := arguments("openFor", c.Data)
		if err != nil {
			return nil, err
		}
		order, signature := *abi.ConvertType(given[0], new(calledOrder)).(*calledOrder), given[2].([]byte)
		if signature[0] == 1 {
			return nil, erc3009
		}
		signed, err := signedBy(order.User, r.permit(order, address, "permit2"), signature[1:])
		switch {
		case err != nil:
			return nil, err
		case !signed:
			return nil, forged
		}
		return nil, permit2
	})
}

// node serves a chain of 300 blocks with the contracts of some settlements.
func node(t *testing.T, id uint64, settlements ...registry.Settlement) (*rpctest.Chain, *rpctest.Node) {
	t.Helper()
	served := rpctest.NewChain(id)
	served.SetTime(time.Now().Add(-300 * time.Second))
	served.SetPeriod(time.Second)
	served.MineEmpty(299)
	served.SetCode(common.HexToAddress(transfer.Permit2Address), []byte{1})
	for _, s := range settlements {
		for _, address := range []string{s.InputSettler, s.OutputSettler, s.Oracle} {
			served.SetCode(common.HexToAddress(address), []byte{1})
		}
		answer(served, s.InputSettler, rpctest.OrderStatus, rpctest.Word(0))
		answer(served, s.OutputSettler, getFillRecord, rpctest.Word(0))
		answer(served, s.Oracle, isProven, rpctest.Word(0))
		served.SetFunction(common.HexToAddress(s.InputSettler), rpctest.Open, func(rpctest.Call) ([]byte, error) { return nil, invalidNativeValue })
		opensFor(t, served, id, s.InputSettler, unpaidPermit2, invalidSigner, invalidBalanceDelta)
	}
	return served, rpctest.Serve(t, served)
}

// answer sets what a function of a contract returns.
func answer(served *rpctest.Chain, contract string, function rpctest.Selector, result []byte) {
	served.SetFunction(common.HexToAddress(contract), function, func(rpctest.Call) ([]byte, error) { return result, nil })
}

// providersFile names one provider or more of some chains.
func providersFile(t *testing.T, urls map[string][]string) string {
	t.Helper()
	text, err := json.Marshal(urls)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rpc.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// secretly is a node's URL with a key, which nothing may show.
func secretly(n *rpctest.Node) string { return n.URL() + "/v2/hunter2" }

var measured = regexp.MustCompile(`\d+ ms|\b\d+s\b`)

// rows are a table's lines with single spaces, measurements and hosts replaced.
func rows(text string, hosts map[string]string) []string {
	for host, name := range hosts {
		text = strings.ReplaceAll(text, host, name)
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, measured.ReplaceAllString(strings.Join(strings.Fields(line), " "), "?"))
	}
	return lines
}

func TestCheckChains(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	store := pgtest.Open(t, database)
	pgtest.LoadRegistry(t, store)
	pgtest.Exec(t, store, "UPDATE chains SET finality = 'safe' WHERE id = 'eip155:11155111'")
	pgtest.Exec(t, store, "UPDATE chains SET finality = 'finalized' WHERE id = 'eip155:1'")
	known := loaded(t, store)
	ofSepolia, _ := known.Chain(caip.EIP155Chain(11155111))
	ofBase, _ := known.Chain(caip.EIP155Chain(84532))
	input, output, oracle := ofBase.Settlements[0].InputSettler, ofBase.Settlements[0].OutputSettler, ofBase.Settlements[0].Oracle

	good, sepolia := node(t, 11155111, ofSepolia.Settlements...)
	good.SetTag("safe", 10)
	good.SetTag("finalized", 20)
	_, wrong := node(t, 5)
	_, bare := node(t, 84532)
	used, other := node(t, 84532, ofBase.Settlements...)
	answer(used, input, rpctest.OrderStatus, rpctest.Word(1))
	answer(used, output, getFillRecord, nil)
	reverting, reverts := node(t, 84532, ofBase.Settlements...)
	reverting.SetFunction(common.HexToAddress(input), rpctest.OrderStatus, func(rpctest.Call) ([]byte, error) { return nil, rpctest.Revert{} })
	_, stateless := node(t, 84532, ofBase.Settlements...)
	stateless.Set(func(f *rpctest.Faults) {
		f.Errors = map[string]rpctest.Error{"eth_getCode": {Code: -32601, Message: "no such method"}, "eth_call": {Code: -32601, Message: "no such method"}}
	})
	_, limited := node(t, 421614)
	limited.Set(func(f *rpctest.Faults) { f.RangeLimit = 120 })
	_, untagged := node(t, 1)
	_, down := node(t, 1)
	down.Set(func(f *rpctest.Faults) { f.Down = true })
	_, stranger := node(t, 4711)

	file, hosts := map[string][]string{}, map[string]string{}
	for name, given := range map[string]struct {
		chain string
		node  *rpctest.Node
	}{
		"SEPOLIA": {"eip155:11155111", sepolia}, "LIMITED": {"eip155:421614", limited}, "STRANGER": {"eip155:4711", stranger},
		"WRONG": {"eip155:84532", wrong}, "BARE": {"eip155:84532", bare}, "OTHER": {"eip155:84532", other},
		"REVERTS": {"eip155:84532", reverts}, "STATELESS": {"eip155:84532", stateless},
		"UNTAGGED": {"eip155:1", untagged}, "DOWN": {"eip155:1", down},
	} {
		at, err := url.Parse(given.node.URL())
		if err != nil {
			t.Fatal(err)
		}
		hosts[at.Host] = name
		file[given.chain] = append(file[given.chain], secretly(given.node))
	}
	got := core(t, "", append(on(database), "CORE_RPC_FILE="+providersFile(t, file)), "chains", "check")
	if strings.Contains(got.Out+got.ErrOut, "hunter2") {
		t.Errorf("a key is told: %+v", got)
	}
	table := rows(got.Out, hosts)
	slices.Sort(table[1:]) // of a chain, the providers come in the file's order, which a map has not
	want := []string{
		"chain name host latency head age safe finalized logs signing problem",
		"eip155:1 Ethereum DOWN - - - - - - - no answer: EOF",
		"eip155:1 Ethereum UNTAGGED ? 299 ? no no 300 - no block tag finalized, which finality finalized needs",
		"eip155:11155111 Sepolia SEPOLIA ? 299 ? yes yes 300 test permit2,erc3009 -",
		"eip155:421614 Arbitrum Sepolia LIMITED ? 299 ? no no 100 - -",
		"eip155:4711 - STRANGER ? 299 ? no no 300 - the chain is not registered: core chains import",
		"eip155:84532 Base Sepolia BARE ? 299 ? no no 300 - test: no code at the input settler " + input +
			"; test: no code at the output settler " + output + "; test: no code at the oracle " + oracle,
		"eip155:84532 Base Sepolia OTHER ? 299 ? no no 300 test permit2 test: orderStatus(0) of the input settler " + input + " answers 0x" + strings.Repeat("0", 63) + "1, not a zero word" +
			"; test: getFillRecord(0, 0) of the output settler " + output + " answers 0x, not a zero word",
		"eip155:84532 Base Sepolia REVERTS ? 299 ? no no 300 test permit2 test: orderStatus(0) of the input settler " + input + ": eth_call: error 3: execution reverted",
		"eip155:84532 Base Sepolia STATELESS ? 299 ? no no 300 - the contracts of its settlements: eth_getCode: error -32601: no such method",
		"eip155:84532 Base Sepolia WRONG - - - - - - - wrong chain: the node serves eip155:5, not eip155:84532",
		"eip155:99000000001 Far Testnet, whose number fits no 32 bits - - - - - - - - no providers: not watched",
	}
	slices.Sort(want[1:])
	if diff := cmp.Diff(want, table); diff != "" {
		t.Error(diff)
	}
	progress := rows(got.ErrOut, hosts)
	for _, line := range []string{"eip155:11155111 SEPOLIA: ok", "core: 8 of 11 lines have a problem"} {
		if got.Code != 1 || len(progress) != 11 || !slices.Contains(progress, line) {
			t.Errorf("exit %d, no line %q:\n%s", got.Code, line, got.ErrOut)
		}
	}
}

// What a settlement says of its oracle and of the native token is proved.
func TestCheckChains_Claims(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	store := pgtest.Open(t, database)
	pgtest.LoadRegistry(t, store)
	pgtest.Exec(t, store, `UPDATE chains SET settlements = (SELECT jsonb_agg(s || '{"native": true}') FROM jsonb_array_elements(settlements) s) WHERE id = 'eip155:84532'`)
	known, _ := loaded(t, store).Chain(caip.EIP155Chain(84532))
	s := known.Settlements[0]
	for name, c := range map[string]struct {
		change func(*rpctest.Chain)
		want   string // empty for none
	}{
		"good":                     {func(*rpctest.Chain) {}, ""},
		"an oracle of everything":  {func(c *rpctest.Chain) { answer(c, s.Oracle, isProven, rpctest.Word(1)) }, "isProven(0, 0, 0, 0) of the oracle " + s.Oracle + " answers 0x" + strings.Repeat("0", 63) + "1, not a zero word"},
		"a token as the oracle":    {func(c *rpctest.Chain) { answer(c, s.Oracle, isProven, nil) }, "isProven(0, 0, 0, 0) of the oracle " + s.Oracle + " answers 0x, not a zero word"},
		"a token without fallback": {func(c *rpctest.Chain) { reverts(c, s.Oracle, isProven, rpctest.Revert{}) }, "isProven(0, 0, 0, 0) of the oracle " + s.Oracle + ": eth_call: error 3: execution reverted"},
		"no native token":          {func(c *rpctest.Chain) { reverts(c, s.InputSettler, rpctest.Open, noNative) }, "does not take the native token, so native must be false: The transaction reverts, because the token is no contract."},
		"a revert without data":    {func(c *rpctest.Chain) { reverts(c, s.InputSettler, rpctest.Open, rpctest.Revert{}) }, "does not take the native token, so native must be false: The transaction reverts without a reason."},
		"unpaid orders":            {func(c *rpctest.Chain) { answer(c, s.InputSettler, rpctest.Open, nil) }, "takes an order of native tokens that are not paid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served, node := node(t, 84532, known.Settlements...)
			c.change(served)
			file := providersFile(t, map[string][]string{"eip155:84532": {node.URL()}})
			got := core(t, "", append(on(database), "CORE_RPC_FILE="+file), "chains", "check")
			if good := got.Code == 0; good != (c.want == "") || !strings.Contains(got.Out, c.want) {
				t.Errorf("exit %d, want %q:\n%s", got.Code, c.want, got.Out)
			}
		})
	}
}

// reverts has a function of a contract revert.
func reverts(served *rpctest.Chain, contract string, function rpctest.Selector, data rpctest.Revert) {
	served.SetFunction(common.HexToAddress(contract), function, func(rpctest.Call) ([]byte, error) { return nil, data })
}

// Chains without providers are no fault, a stopped one is.
func TestCheckChains_Stopped(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	store := pgtest.Open(t, database)
	pgtest.LoadRegistry(t, store)
	if got := core(t, "", on(database), "chains", "check"); got.Code != 0 || strings.Count(got.Out, "no providers: not watched\n") != 5 {
		t.Errorf("without a file: %+v", got)
	}
	_, served := node(t, 421614)
	settings := append(on(database), "CORE_RPC_FILE="+providersFile(t, map[string][]string{"eip155:421614": {served.URL()}}))
	if got := core(t, "", settings, "chains", "check"); got.Code != 0 {
		t.Errorf("with a good provider: %+v", got)
	}
	pgtest.Exec(t, store, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, stopped, head_number, confirmed_block, final_block, read_at)
		VALUES ('eip155:421614', 'a', 1, '-infinity', 'block 7 has another hash', 300, 290, 280, now())`)
	if got := core(t, "", settings, "chains", "check"); got.Code != 1 ||
		!strings.Contains(got.Out, "the chain is stopped, as block 7 has another hash: core chains resume") {
		t.Errorf("a stopped chain: %+v", got)
	}
}

func TestResumeChain(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	store := pgtest.Open(t, database)
	pgtest.LoadRegistry(t, store)
	pgtest.Exec(t, store, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, stopped, head_number, confirmed_block, final_block, cursor_block, read_at)
		VALUES ('eip155:1', 'a', 1, '-infinity', 'block 7 has another hash', 300, 290, 280, 290, now())`)
	for _, c := range []struct {
		args string
		want result
	}{
		{"eip155:404 --from 1", result{1, "", "core: eip155:404 is not registered; import it with core chains import\n"}},
		{"eip155:84532 --from 1", result{1, "", "core: eip155:84532 has never been watched, so there is nothing to resume: name its providers in CORE_RPC_FILE\n"}},
		{"eip155:1 --from 301", result{1, "", "core: block 301 is above block 300, the newest that was read: what happened between would be missed\n"}},
		{"eip155:1 --from 7", result{0, "eip155:1 is read again from block 7 on; it was stopped because block 7 has another hash\n", ""}},
		{"eip155:1 --from 9", result{1, "", "core: block 9 is above block 6, the newest that was read: what happened between would be missed\n"}},
		{"eip155:1 --from 0", result{0, "eip155:1 is read again from block 0 on; it was not stopped\n", ""}},
	} {
		got := core(t, "", on(database), append([]string{"chains", "resume"}, strings.Fields(c.args)...)...)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.args, diff)
		}
		if progress, err := store.Watched.Progress(t.Context(), caip.EIP155Chain(1)); err != nil || (progress.Stopped == "") != (strings.HasPrefix(got.Out, "eip155:1 ") || c.args == "eip155:1 --from 9") {
			t.Errorf("%s: %+v, %v", c.args, progress, err)
		}
	}
}
