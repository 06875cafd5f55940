package data_test

import (
	"fmt"
	"strings"
	"testing"
)

// tempo has no coin, so that no input can be native.
const tempo = "eip155:4217"

// Settlements take native inputs wherever there is a coin, and leave solvers the time that the framework's needs. core tests what else the files promise.
func TestSettlements(t *testing.T) {
	t.Parallel()
	type list struct {
		Chains []struct {
			ChainID     string           `json:"chainId"`
			Settlements []map[string]any `json:"settlements"`
		} `json:"chains"`
	}
	live, test := decode[list](t, "settlements-lifi-mainnets.json").Chains, decode[list](t, "settlements-lifi-testnets.json").Chains
	for _, chain := range append(live, test...) {
		for _, s := range chain.Settlements {
			if native, _ := s["native"].(bool); native == (chain.ChainID == tempo) {
				t.Errorf("%s: native is %v", chain.ChainID, s["native"])
			}
			if s["minDeadline"] != 1500.0 {
				t.Errorf("%s: minDeadline is %v", chain.ChainID, s["minDeadline"])
			}
		}
	}
	if words := fmt.Sprintf("on %d live and %d test chains", len(live), len(test)); !strings.Contains(string(read(t, "README.md")), words) {
		t.Errorf("README.md does not say %q", words)
	}
}
