package command_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
)

// listFile writes a list, such as {"tokens": […]}, and returns its path.
func listFile(t *testing.T, member string, rows ...any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{member: rows})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), member+".json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// recordedChainRow is the recorded chain with a deployment a settler, which claim these schemes.
func recordedChainRow(r *recordedChain, claims map[string][]string) map[string]any {
	var settlements []any
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		settlements = append(settlements, map[string]any{
			"scheme": "oif-v1/StandardOrder", "deployment": strings.ToLower(name), "inputSettler": r.Chain.Settlers[name], "outputSettler": r.Chain.OutputSettler,
			"oracle": r.Chain.Oracle, "signing": claims[name],
		})
	}
	return map[string]any{
		"chainId": fmt.Sprintf("eip155:%d", r.Chain.ChainID), "name": "Recorded", "environment": "test",
		"nativeCurrency": map[string]any{"name": "Ether", "symbol": "ETH", "decimals": 18}, "settlements": settlements,
	}
}

func tokenRow(r *recordedChain, address common.Address, symbol string, members map[string]any) map[string]any {
	row := map[string]any{"chainId": r.Chain.ChainID, "address": address, "symbol": symbol, "decimals": 6}
	maps.Copy(row, members)
	return row
}

// authorizations are the member erc3009 of a token's row.
func authorizations(name, version, form string) map[string]any {
	return map[string]any{"erc3009": map[string]any{"name": name, "version": version, "form": form}}
}

// A settlement's claims of signing are proved by the answers that the recorded settlers gave.
func TestCheckChains_RecordedSigning(t *testing.T) {
	t.Parallel()
	r := recorded(t)
	weth := tokenRow(r, r.Chain.WETH9, "WETH", nil)
	dollar := func(name string) map[string]any {
		return tokenRow(r, r.Chain.FiatTokenV2_2, "USDC", authorizations(name, "2", "bytes"))
	}
	const otherWitness = "which is not proven: openFor takes signatures of another witness than the one with the order's user"
	for name, c := range map[string]struct {
		claims   map[string][]string
		tokens   []any
		wrapped  string // its symbol, where the chain names it
		change   func(*rpctest.Chain)
		signing  string // the column
		problems []string
		warnings int
	}{
		"none claimed": {
			claims: map[string][]string{"head": {}, "audited": nil, "lifiV1": nil}, tokens: []any{weth},
			signing: "audited erc3009 (opens unpaid orders); head permit2,erc3009 (opens unpaid orders); lifiv1 erc3009 (opens unpaid orders)",
		},
		"what is proven": {
			claims: map[string][]string{"head": {"permit2", "erc3009"}, "lifiV1": {"erc3009"}}, tokens: []any{weth, dollar("USD Coin")},
			signing: "head permit2,erc3009 (opens unpaid orders); lifiv1 erc3009 (opens unpaid orders)", warnings: 2,
		},
		"other witnesses": {
			claims: map[string][]string{"audited": {"permit2"}, "lifiV1": {"permit2"}}, tokens: []any{weth},
			signing:  "audited erc3009 (opens unpaid orders); lifiv1 erc3009 (opens unpaid orders)",
			problems: []string{"audited: signing claims permit2, " + otherWitness, "lifiv1: signing claims permit2, " + otherWitness}, warnings: 2,
		},
		"a token of another name": {
			claims: map[string][]string{"head": {"permit2", "erc3009"}}, tokens: []any{weth, dollar("USDC")}, signing: "head permit2 (opens unpaid orders)",
			problems: []string{
				"head: signing claims erc3009, which is not proven: it opens unpaid orders, and tokens are not proven: USDC " + r.Chain.FiatTokenV2_2.Hex() + ": erc3009: DOMAIN_SEPARATOR() answers 0x",
				`form "bytes": receiveWithAuthorization refuses a right signature: The transaction reverts with the text "FiatTokenV2: invalid signature".`,
			}, warnings: 1,
		},
		"a settler that reads no authorizations": {
			claims: map[string][]string{"head": {"erc3009"}}, tokens: []any{weth, dollar("USD Coin")}, signing: "head none (opens unpaid orders)",
			change: func(c *rpctest.Chain) {
				c.SetFunction(r.Chain.Settlers["head"], openFor, func(rpctest.Call) ([]byte, error) { return nil, nil })
			},
			problems: []string{"USDC " + r.Chain.FiatTokenV2_2.Hex() + ": openFor takes an empty authorization"}, warnings: 1,
		},
		"a token that takes v, r and s alone is no input": {
			claims: map[string][]string{"head": {"erc3009"}}, tokens: []any{weth, tokenRow(r, r.Chain.VRSToken, "OLD", authorizations("New dollar", "1", "vrs"))},
			signing: "head permit2,erc3009 (opens unpaid orders)", warnings: 1,
		},
		"a wrapped token of another symbol": {
			claims: map[string][]string{"head": {"erc3009"}}, tokens: []any{tokenRow(r, r.Chain.WETH9, "tWETH", nil)}, signing: "head permit2",
			problems: []string{"erc3009, which is not proven: no wrapped native token of the chain is registered to try it with: wrappedNative of the chain"},
		},
		"a wrapped token that the chain names": {
			claims: map[string][]string{"head": {"erc3009"}}, tokens: []any{tokenRow(r, r.Chain.WETH9, "tWETH", nil)}, wrapped: "tWETH",
			signing: "head permit2,erc3009 (opens unpaid orders)", warnings: 1,
		},
		"no tokens": {
			claims: map[string][]string{"head": {"permit2", "erc3009"}}, signing: "head none",
			problems: []string{"permit2, which is not proven: no ERC-20 token of the chain", "erc3009, which is not proven: no wrapped native token"},
		},
		"no Permit2": {
			claims: map[string][]string{"head": {"permit2"}}, tokens: []any{weth}, change: func(c *rpctest.Chain) { c.SetCode(r.Chain.Permit2, nil) },
			signing: "head erc3009 (opens unpaid orders)", problems: []string{"no code at Permit2 " + transfer.Permit2Address}, warnings: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.Database(t)
			row := recordedChainRow(r, c.claims)
			if c.wrapped != "" {
				row["wrappedNative"] = c.wrapped
			}
			chains := listFile(t, "chains", row)
			importsChains(t, database, chains, "chains: 1 added, 0 updated, 0 unchanged, 0 refused")
			if len(c.tokens) > 0 {
				if got := core(t, "", on(database), "tokens", "import", listFile(t, "tokens", c.tokens...)); got.Code != 0 {
					t.Fatalf("%+v", got)
				}
			}
			known, _ := loaded(t, pgtest.Open(t, database)).Chain(caip.EIP155Chain(uint64(r.Chain.ChainID)))
			served, node := node(t, uint64(r.Chain.ChainID), known.Settlements...)
			r.serve(t, served)
			if c.change != nil {
				c.change(served)
			}
			settings := append(on(database), "CORE_RPC_FILE="+providersFile(t, map[string][]string{known.ID.String(): {node.URL()}}))
			for _, file := range [][]string{nil, {chains}} {
				got := core(t, "", settings, append([]string{"chains", "check"}, file...)...)
				cells := strings.Join(strings.Fields(strings.Split(got.Out, "\n")[1]), " ")
				for _, want := range append(c.problems, " 300 "+c.signing+" ") {
					if !strings.Contains(cells, want) {
						t.Errorf("%v: the line does not say %q:\n%s", file, want, cells)
					}
				}
				if warnings := strings.Count(got.ErrOut, " that nobody has paid; "); warnings != c.warnings || (got.Code == 0) != (len(c.problems) == 0) {
					t.Errorf("%v: exit %d, %d warnings:\n%s", file, got.Code, warnings, got.ErrOut)
				}
			}
		})
	}
}

// A scheme is proven by an error that only a settler with it has.
func TestCheckChains_Signing(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	store := pgtest.Open(t, database)
	pgtest.LoadRegistry(t, store)
	known, _ := loaded(t, store).Chain(caip.EIP155Chain(11155111))
	s := known.Settlements[0]
	selector := func(signature string) rpctest.Revert { return rpctest.Revert(crypto.Keccak256([]byte(signature))[:4]) }
	for name, c := range map[string]struct {
		permit2, forged, erc3009 error
		signing, want            string // want is empty for none
	}{
		"balances are compared":     {unpaidPermit2, invalidSigner, invalidBalanceDelta, "test permit2,erc3009", ""},
		"the token refuses":         {unpaidPermit2, invalidSigner, selector("SignatureAndInputsNotEqual()"), "test permit2,erc3009", ""},
		"no signatures at all":      {rpctest.Revert{}, invalidSigner, rpctest.Revert{}, "test none", "permit2, which is not proven: The transaction reverts without a reason."},
		"no ERC-3009":               {unpaidPermit2, invalidSigner, selector("SignatureNotSupported(bytes1)"), "test permit2", "erc3009, which is not proven: The transaction reverts, because the settler does not know this kind of signature."},
		"a bare revert":             {unpaidPermit2, invalidSigner, rpctest.Revert{}, "test permit2", "erc3009, which is not proven: The transaction reverts without a reason."},
		"free orders with Permit2":  {nil, invalidSigner, invalidBalanceDelta, "test erc3009", "permit2, which is not proven: openFor takes an order that nobody has paid"},
		"forged signatures":         {unpaidPermit2, unpaidPermit2, invalidBalanceDelta, "test erc3009", "permit2, which is not proven: openFor does not refuse another account's signature"},
		"another text than Permit2": {rpctest.Revert(common.FromHex("0x08c379a0")), invalidSigner, invalidBalanceDelta, "test erc3009", "permit2, which is not proven: The transaction reverts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served, node := node(t, 11155111, s)
			opensFor(t, served, 11155111, s.InputSettler, c.permit2, c.forged, c.erc3009)
			got := core(t, "", append(on(database), "CORE_RPC_FILE="+providersFile(t, map[string][]string{known.ID.String(): {node.URL()}})), "chains", "check")
			if (got.Code == 0) != (c.want == "") || !strings.Contains(got.Out, " "+c.signing+" ") || !strings.Contains(got.Out, c.want) {
				t.Errorf("exit %d, want %q and %q:\n%s", got.Code, c.signing, c.want, got.Out)
			}
		})
	}
}

// A token's data are proved in its own form by the answers that the recorded tokens gave.
func TestCheckTokens(t *testing.T) {
	t.Parallel()
	r := recorded(t)
	database := pgtest.Database(t)
	importsChains(t, database, listFile(t, "chains", recordedChainRow(r, map[string][]string{"head": {}})), "chains: 1 added, 0 updated, 0 unchanged, 0 refused")
	known, _ := loaded(t, pgtest.Open(t, database)).Chain(caip.EIP155Chain(uint64(r.Chain.ChainID)))
	served, node := node(t, uint64(r.Chain.ChainID), known.Settlements...)
	r.serve(t, served)
	settings := append(on(database), "CORE_RPC_FILE="+providersFile(t, map[string][]string{known.ID.String(): {node.URL()}}))

	permits := map[string]any{"eip2612": map[string]any{"name": "USD Coin", "version": "2"}}
	both := authorizations("USD Coin", "2", "bytes")
	maps.Copy(both, permits)
	fiat := r.Chain.FiatTokenV2_2
	const anySignature = "receiveWithAuthorization takes any signature"
	for name, c := range map[string]struct {
		row  map[string]any
		want string // empty for none
	}{
		"authorizations and permits": {tokenRow(r, fiat, "USDC", both), ""},
		"v, r and s":                 {tokenRow(r, r.Chain.VRSToken, "OLD", authorizations("Old dollar", "1", "vrs")), ""},
		"both forms":                 {tokenRow(r, fiat, "USDC", authorizations("USD Coin", "2", "vrs")), ""},
		"the wrong form": {
			tokenRow(r, r.Chain.VRSToken, "OLD", authorizations("Old dollar", "1", "bytes")),
			`erc3009, form "bytes": receiveWithAuthorization refuses a right signature: The transaction reverts without a reason.; its form is "vrs"`,
		},
		"another name":              {tokenRow(r, fiat, "USDC", authorizations("USDC", "2", "bytes")), `which is not of the name "USDC" and version "2"; erc3009, form "bytes": receiveWithAuthorization refuses`},
		"another version":           {tokenRow(r, fiat, "USDC", authorizations("USD Coin", "1", "bytes")), `which is not of the name "USD Coin" and version "1"`},
		"another chain's permits":   {tokenRow(r, fiat, "USDC", map[string]any{"eip2612": map[string]any{"name": "USDC", "version": "2"}}), `eip2612: DOMAIN_SEPARATOR() answers 0x`},
		"a wrapped coin":            {tokenRow(r, r.Chain.WETH9, "WETH", authorizations("Wrapped Ether", "1", "bytes")), anySignature},
		"no authorizations":         {tokenRow(r, r.Chain.FeeToken, "FEE", both), "eip2612: nonces() answers 0x, not a number"},
		"no contract":               {tokenRow(r, common.HexToAddress("0xdead"), "NONE", authorizations("None", "1", "bytes")), anySignature},
		"an authorization's domain": {tokenRow(r, r.Chain.USD6, "USD6", authorizations("USD Six", "1", "bytes")), "erc3009: DOMAIN_SEPARATOR() answers 0x, which is not of the name"},
	} {
		got := core(t, "", settings, "tokens", "check", listFile(t, "tokens", c.row))
		if (got.Code == 0) != (c.want == "") || !strings.Contains(got.Out, c.want) {
			t.Errorf("%s: exit %d, want %q:\n%s", name, got.Code, c.want, got.Out)
		}
	}
}

// Tokens of the registry and of a file are checked, once by each provider, and nothing of a file is stored.
func TestCheckTokens_Table(t *testing.T) {
	t.Parallel()
	r := recorded(t)
	database := pgtest.Database(t)
	store := pgtest.Open(t, database)
	pgtest.LoadRegistry(t, store)
	importsChains(t, database, listFile(t, "chains", recordedChainRow(r, map[string][]string{"head": {}})), "chains: 1 added, 0 updated, 0 unchanged, 0 refused")
	known, _ := loaded(t, store).Chain(caip.EIP155Chain(uint64(r.Chain.ChainID)))
	served, good := node(t, uint64(r.Chain.ChainID), known.Settlements...)
	r.serve(t, served)
	_, bad := node(t, uint64(r.Chain.ChainID))
	bad.Set(func(f *rpctest.Faults) { f.Down = true })
	settings := append(on(database), "CORE_RPC_FILE="+providersFile(t, map[string][]string{known.ID.String(): {good.URL(), bad.URL()}}))
	hosts := map[string]string{strings.TrimPrefix(good.URL(), "http://"): "GOOD", strings.TrimPrefix(bad.URL(), "http://"): "BAD"}
	check := func(code int, file []string, want ...string) {
		t.Helper()
		got := core(t, "", settings, append([]string{"tokens", "check"}, file...)...)
		want = append([]string{"chain token address erc3009 eip2612 host problem"}, want...)
		if diff := cmp.Diff(want, rows(got.Out, hosts)); diff != "" || got.Code != code {
			t.Errorf("%v: exit %d (-want +got):\n%s\n%s", file, got.Code, diff, got.ErrOut)
		}
	}
	sepolia := `eip155:11155111 USDC 0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238 "USDC" "2" bytes "USDC" "2" - no providers`
	check(0, nil, sepolia+": not checked")
	fiat := r.Chain.FiatTokenV2_2
	line := fmt.Sprintf(`eip155:31337 USDC %s "USD Coin" "2" bytes - `, fiat)
	list := listFile(t, "tokens", tokenRow(r, fiat, "USDC", authorizations("USD Coin", "2", "bytes")), tokenRow(r, r.Chain.USD6, "USD6", nil))
	check(1, []string{list}, line+"GOOD -", line+"BAD no answer: EOF")
	for _, token := range loaded(t, store).Tokens {
		if token.ID.Address == fiat.Hex() {
			t.Error("the check has stored a token")
		}
	}
	check(1, []string{listFile(t, "tokens", map[string]any{
		"chainId": 11155111, "address": "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", "symbol": "USDC", "decimals": 6, "erc3009": registry.ERC3009{Name: "USDC", Version: "2", Form: registry.BytesForm},
	})}, strings.Replace(sepolia, `bytes "USDC" "2" -`, "bytes - -", 1)+", so it is not checked")
	refused := core(t, "", settings, "tokens", "check", listFile(t, "tokens", tokenRow(r, fiat, "USDC", map[string]any{"erc3009": true})))
	if refused.Code != 1 || !strings.Contains(refused.Out, `refused token in row 0 "USDC": erc3009: json`) || !strings.Contains(refused.ErrOut, "1 rows would be refused") {
		t.Errorf("a broken row: %+v", refused)
	}
}
