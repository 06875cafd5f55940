package data_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/testkit/embedded"
)

// The generator makes the shipped lists again, byte for byte, and drops a token of which sources contradict each other in the decimals, as those
// of the shipped lists do not.
func TestGenerate(t *testing.T) {
	t.Parallel()
	modules, err := embedded.NodeModules(".")
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	generate(t, filepath.Dir(modules), out)
	for _, name := range []string{"chains.json", "tokens.json", "NOTICE"} {
		got, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(read(t, name)), "\n"), strings.Split(string(got), "\n")); diff != "" {
			t.Errorf("%s (-committed +generated):\n%s", name, diff)
		}
	}

	const (
		book = "@bgd-labs/aave-address-book"
		weth = "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"
	)
	changed := filepath.Join(t.TempDir(), "node_modules")
	if err := os.MkdirAll(filepath.Join(changed, book), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".package-lock.json", "viem", "@hyperlane-xyz", "@eth-optimism", "@uniswap", book + "/package.json", book + "/LICENSE"} {
		if err := os.Symlink(filepath.Join(modules, name), filepath.Join(changed, name)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(modules, book, "tokenlist.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, row := range list["tokens"].([]any) {
		if token := row.(map[string]any); token["address"] == weth {
			token["decimals"] = 6
		}
	}
	if text, err = json.Marshal(list); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(changed, book, "tokenlist.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := generate(t, filepath.Dir(changed), out); !strings.Contains(said, "dropped 1:"+weth+": decimals 18 (") {
		t.Errorf("the generator does not say that it drops the token:\n%s", said)
	}
	tokens, err := os.ReadFile(filepath.Join(out, "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(tokens), `{"chainId":1,"address":"`+weth) {
		t.Error("the list has the token")
	}
}

func generate(t *testing.T, directory, out string) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "node", "generate.mjs", directory, out).CombinedOutput()
	if err != nil {
		t.Fatalf("generate.mjs: %v\n%s", err, said)
	}
	return string(said)
}
