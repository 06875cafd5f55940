package data_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/caip"
)

type namedChain struct {
	ChainID        string         `json:"chainId"`
	Name           string         `json:"name"`
	Environment    string         `json:"environment"`
	NativeCurrency map[string]any `json:"nativeCurrency"`
}

// The files of settlements change of the default chains nothing but their settlements, spell every address as EIP-55 does,
// and take native inputs wherever there is a coin.
func TestSettlements(t *testing.T) {
	t.Parallel()
	type list struct {
		Chains []json.RawMessage `json:"chains"`
	}
	known := map[string]namedChain{}
	for _, raw := range decode[list](t, "chains.json").Chains {
		c := decodeRow[namedChain](t, raw)
		known[c.ChainID] = c
	}
	rows := map[string]int{}
	for environment, file := range map[string]string{"live": "settlements-lifi-mainnets.json", "test": "settlements-lifi-testnets.json"} {
		for _, raw := range decode[list](t, file).Chains {
			rows[environment]++
			c := decodeRow[namedChain](t, raw)
			members := decodeRow[map[string]json.RawMessage](t, raw)
			for _, member := range []string{"chainId", "name", "environment", "nativeCurrency", "settlements"} {
				delete(members, member)
			}
			if published, ok := known[c.ChainID]; !ok {
				delete(members, "blockTimeMs")
			} else if diff := cmp.Diff(published, c); diff != "" {
				t.Errorf("%s (-chains.json +%s):\n%s", c.ChainID, file, diff)
			}
			if c.Environment != environment || len(members) > 0 {
				t.Errorf("%s, %s: is %s, sets also %v", file, c.ChainID, c.Environment, members)
			}
			checkSettlements(t, file, c.ChainID, raw)
		}
	}
	readme := string(read(t, "README.md"))
	if words := fmt.Sprintf("on %d live and %d test chains", rows["live"], rows["test"]); !strings.Contains(readme, words) {
		t.Errorf("README.md does not say %q", words)
	}
}

func decodeRow[T any](t *testing.T, raw json.RawMessage) (value T) {
	t.Helper()
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// tempo has no coin, so that no input can be native.
const tempo = "eip155:4217"

func checkSettlements(t *testing.T, file, chain string, raw json.RawMessage) {
	t.Helper()
	where := file + ", " + chain
	row := decodeRow[struct {
		Settlements []map[string]any `json:"settlements"`
	}](t, raw)
	if len(row.Settlements) == 0 {
		t.Errorf("%s has no settlement", where)
	}
	for _, s := range row.Settlements {
		if native, ok := s["native"].(bool); ok && native == (chain == tempo) || !ok && chain != tempo {
			t.Errorf("%s: native is %v", where, s["native"])
		}
		var addresses []string
		for _, member := range []string{"inputSettler", "outputSettler", "oracle"} {
			text, _ := s[member].(string)
			if address, err := caip.ParseAddress(text); err != nil || address != text {
				t.Errorf("%s: %s %q, %v", where, member, text, err)
			}
			addresses = append(addresses, text)
		}
		if slices.Sort(addresses); len(slices.Compact(addresses)) != 3 {
			t.Errorf("%s: an address stands twice in %v", where, s)
		}
	}
}
