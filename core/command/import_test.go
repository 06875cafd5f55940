package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
)

const brokenChains = `{"chains":[
	{"chainId":"eip155:10","name":"OP Mainnet","environment":"live","nativeCurrency":{"name":"Ether","symbol":"ETH","decimals":18}},
	{"chainId":"eip155:11","name":"No flag","nativeCurrency":{"name":"Ether","symbol":"ETH","decimals":18}},
	"not an object"
]}`

const brokenTokens = `{"name":"list","tokens":[
	{"chainId":1,"address":"0xdAC17F958D2ee523a2206206994597C13D831ec7","symbol":"USDT","decimals":6},
	{"chainId":404,"address":"0xdAC17F958D2ee523a2206206994597C13D831ec7","symbol":"FAR","decimals":6},
	{"chainId":1,"address":"0x0000000000000000000000000000000000000001","symbol":"DEC"},
	{"chainId":1,"address":"0x0000000000000000000000000000000000000002","symbol":"BIG","decimals":256},
	{"chainId":404,"address":"7vfCXTUXx5WJV5JADk17DUJ4ksgau7utNKj4b963voxs","symbol":"AFAR","decimals":6}
]}`

func TestImport(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	file := func(name string, text []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	chains, tokens := file("chains.json", pgtest.ChainsJSON), file("tokens.json", pgtest.TokensJSON)
	for _, c := range []struct {
		name, kind, file, input string
		want                    []string // the beginnings of the lines
		refused                 string   // the rows that standard error counts
	}{
		{"chains, a file", "chains", chains, "", []string{"chains: 5 added, 0 updated, 0 unchanged, 0 refused"}, ""},
		{"chains, the same again", "chains", chains, "", []string{"chains: 0 added, 0 updated, 5 unchanged, 0 refused"}, ""},
		{
			"chains, standard input", "chains", "-", strings.Replace(string(pgtest.ChainsJSON), "Ethereum", "Mainnet", 1),
			[]string{"chains: 0 added, 1 updated, 4 unchanged, 0 refused"},
			"",
		},
		{"chains, broken rows", "chains", "-", brokenChains, []string{
			`refused chain in row 1 "No flag": environment must be "test" or "live", not ""`,
			`refused chain in row 2 "": not a chain: `,
			`chains: 1 added, 0 updated, 0 unchanged, 2 refused`,
		}, "2"},
		{"tokens, a file", "tokens", tokens, "", []string{unlicensed(7), "tokens: 7 added, 0 updated, 0 unchanged, 0 refused"}, ""},
		{"tokens, the same again", "tokens", tokens, "", []string{unlicensed(7), "tokens: 0 added, 0 updated, 7 unchanged, 0 refused"}, ""},
		{"tokens, broken rows", "tokens", "-", brokenTokens, []string{
			`refused token in row 2 "DEC": decimals is required; the contract's decimals() has it`,
			`refused token in row 3 "": not a token: `,
			"left out: 2 tokens of eip155:404, which is not registered; import the chain with `core chains import` first to have them",
			unlicensed(1),
			`tokens: 1 added, 0 updated, 0 unchanged, 2 refused`,
		}, "2"},
		{
			"tokens, other decimals", "tokens", "-", `{"tokens":[{"chainId":1,"address":"0xdAC17F958D2ee523a2206206994597C13D831ec7","symbol":"USDT","decimals":8}]}`,
			[]string{
				"changed: USDT eip155:1:0xdAC17F958D2ee523a2206206994597C13D831ec7 had 6 decimals and has 8 now; the contract's decimals() tells which is right",
				unlicensed(1), "tokens: 0 added, 1 updated, 0 unchanged, 0 refused",
			},
			"",
		},
	} {
		got := core(t, c.input, on(url), c.kind, "import", c.file)
		lines := strings.Split(strings.TrimSuffix(got.Out, "\n"), "\n")
		for i, line := range lines {
			if i < len(c.want) && strings.HasPrefix(line, c.want[i]) {
				lines[i] = c.want[i]
			}
		}
		code, errOut := 0, ""
		if c.refused != "" {
			code, errOut = 1, "core: "+c.refused+" rows were refused, the others are imported; correct the rows named above and import the list again\n"
		}
		if diff := cmp.Diff(c.want, lines); diff != "" || got.Code != code || got.ErrOut != errOut {
			t.Errorf("%s: exit %d, %q (-want +got):\n%s", c.name, got.Code, got.ErrOut, diff)
		}
	}
	store := pgtest.Open(t, url)
	if n := lookUp[int](t, store, `SELECT count(*) FROM chains`); n != 6 {
		t.Errorf("%d chains", n)
	}
	if n := lookUp[int](t, store, `SELECT count(*) FROM tokens`); n != 8 {
		t.Errorf("%d tokens", n)
	}
}

func unlicensed(tokens int) string {
	return fmt.Sprintf("no licence is recorded of %d tokens; --license SPDX records one", tokens)
}

func TestImport_InvalidList(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	for _, kind := range []string{"chains", "tokens"} {
		got := core(t, "{}", on(url), kind, "import", "-")
		if got.Code != 1 || got.Out != "" || strings.Count(got.ErrOut, "\n") != 1 ||
			!strings.HasPrefix(got.ErrOut, "core: read the "+strings.TrimSuffix(kind, "s")+" list: it has no \"") {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	missing := core(t, "", on(url), "chains", "import", filepath.Join(t.TempDir(), "nowhere.json"))
	if missing.Code != 1 || !strings.Contains(missing.ErrOut, "nowhere.json: no such file") {
		t.Errorf("a file that is not there: %+v", missing)
	}
	store := pgtest.Open(t, url)
	if n := lookUp[int](t, store, `SELECT (SELECT count(*) FROM chains) + (SELECT count(*) FROM tokens)`); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}
