package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const dataDirectory = "../../deploy/data"

// The generator makes the shipped lists again, byte for byte.
func TestTokenData(t *testing.T) {
	t.Parallel()
	project := newNodeProject(t)
	out := t.TempDir()
	generate(t, project.dir, out)
	for _, name := range []string{"chains.json", "tokens.json", "NOTICE"} {
		want, err := os.ReadFile(filepath.Join(dataDirectory, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
			t.Errorf("%s (-committed +generated):\n%s", name, diff)
		}
	}
}

// Sources that contradict each other in the decimals of a token drop it; of another symbol the first is taken.
func TestTokenData_Conflicts(t *testing.T) {
	t.Parallel()
	const (
		aaveBook = "@bgd-labs/aave-address-book"
		weth     = "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"
		dai      = "0x6B175474E89094C44Da98b954EedeAC495271d0F"
	)
	modules := filepath.Join(newNodeProject(t).dir, "node_modules")
	changed := filepath.Join(t.TempDir(), "node_modules")
	if err := os.MkdirAll(filepath.Join(changed, aaveBook), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".package-lock.json", "viem", "@hyperlane-xyz", "@eth-optimism", "@uniswap", aaveBook + "/package.json", aaveBook + "/LICENSE"} {
		if err := os.Symlink(filepath.Join(modules, name), filepath.Join(changed, name)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(modules, aaveBook, "tokenlist.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, row := range list["tokens"].([]any) {
		switch token := row.(map[string]any); token["address"] {
		case weth:
			token["decimals"] = 6
		case dai:
			token["symbol"] = "SAI"
		}
	}
	if text, err = json.Marshal(list); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(changed, aaveBook, "tokenlist.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	said := generate(t, filepath.Dir(changed), out)
	for _, line := range []string{"dropped 1:" + weth + ": decimals 18 (", "kept 1:" + dai + " as DAI ("} {
		if !strings.Contains(said, "\n"+line) && !strings.HasPrefix(said, line) {
			t.Errorf("the generator does not say %q:\n%s", line, said)
		}
	}
	tokens, err := os.ReadFile(filepath.Join(out, "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(tokens), `{"chainId":1,"address":"`+weth) || !strings.Contains(string(tokens), `{"chainId":1,"address":"`+dai+`","name":"Dai Stablecoin","symbol":"DAI"`) {
		t.Error("the list does not follow what the generator said")
	}
}

func generate(t *testing.T, directory, out string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "node", dataDirectory+"/generate.mjs", directory, out)
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("generate.mjs: %v\n%s", err, said)
	}
	return string(said)
}

type listedToken struct {
	ChainID  uint64  `json:"chainId"`
	Address  string  `json:"address"`
	Symbol   string  `json:"symbol"`
	Decimals int     `json:"decimals"`
	LogoURI  *string `json:"logoURI"`
}

// Uniswap's list is imported as deploy/data/README.md shows it, and clients read it within seconds.
func TestTokensImport_UniswapList(t *testing.T) {
	t.Parallel()
	file := filepath.Join(newNodeProject(t).dir, "node_modules/@uniswap/default-token-list/build/uniswap-default.tokenlist.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tokens []listedToken `json:"tokens"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	own, _ := ownStack(t, 1)
	key := newPerson(t, own.Env().GatewayURL).newKey(t)
	reader := apiClient(t, key.Key)
	reader.base = own.Env().GatewayURL
	tokens := func() map[string]map[string]any {
		byID := map[string]map[string]any{}
		for _, token := range expect[[]map[string]any](t, reader.do(http.MethodGet, "/v2/tokens", nil), http.StatusOK) {
			byID[token["address"].(string)] = token
		}
		return byID
	}
	known := map[string]bool{}
	for _, chain := range expect[[]map[string]any](t, reader.do(http.MethodGet, "/v2/chains", nil), http.StatusOK) {
		known[chain["chainId"].(string)] = true
	}
	want, leftOut := tokens(), map[uint64]int{}
	for _, token := range list.Tokens {
		chain := fmt.Sprintf("eip155:%d", token.ChainID)
		if !known[chain] {
			leftOut[token.ChainID]++
			continue
		}
		id := chain + ":" + token.Address
		want[id] = map[string]any{
			"address": id, "chainId": chain, "symbol": token.Symbol, "decimals": float64(token.Decimals), "metadata": nil,
		}
		if token.LogoURI != nil {
			want[id]["metadata"] = *token.LogoURI
		}
	}
	taken := len(list.Tokens)
	var said strings.Builder
	for _, number := range slices.Sorted(maps.Keys(leftOut)) {
		taken -= leftOut[number]
		fmt.Fprintf(&said, "left out: %d tokens of eip155:%d, which is not registered", leftOut[number], number)
		said.WriteString("; import the chain with `core chains import` first to have them\n")
	}
	const source = "https://tokens.uniswap.org"
	args := []string{"tokens", "import", "--license", "GPL-3.0-or-later", "--source", source, file}
	first := coreOn(t, own.Env().DatabaseURL, "", args...)
	if !strings.HasPrefix(first, said.String()) || !strings.HasSuffix(first, " unchanged, 0 refused\n") || len(leftOut) == 0 {
		t.Errorf("said %s\nwant %s", first, said.String())
	}
	eventually(t, func() error {
		if diff := cmp.Diff(want, tokens()); diff != "" {
			return fmt.Errorf("tokens (-want +got):\n%s", diff)
		}
		return nil
	})
	progress := regexp.MustCompile(`(?m)^tokens: \d+ of \d+\n`) // one line for each second that it takes
	again := progress.ReplaceAllString(coreOn(t, own.Env().DatabaseURL, "", args...), "")
	if diff := cmp.Diff(said.String()+fmt.Sprintf("tokens: 0 added, 0 updated, %d unchanged, 0 refused\n", taken), again); diff != "" {
		t.Errorf("again (-want +got):\n%s", diff)
	}
	sources := coreOn(t, own.Env().DatabaseURL, "", "tokens", "sources")
	if !strings.Contains(sources, fmt.Sprintf("%7d  GPL-3.0-or-later      %s\n", taken, source)) {
		t.Errorf("sources:\n%s", sources)
	}
}
