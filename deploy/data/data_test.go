// Package data_test checks the shipped chains and tokens against README.md.
package data_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/caip"
)

const nativeAddress = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"

// permissive are the allowed licences of shipped data.
var permissive = []string{"MIT", "Apache-2.0"}

type source struct {
	Source    string `json:"source"`
	License   string `json:"license"`
	Integrity string `json:"integrity"`
	Rows      int    `json:"rows"`
}

type chainList struct {
	Sources []source `json:"sources"`
	Chains  []struct {
		ChainID     string `json:"chainId"`
		Environment string `json:"environment"`

		Confirmations int    `json:"confirmations"`
		Finality      string `json:"finality"`
		BlockTimeMS   int    `json:"blockTimeMs"`
	} `json:"chains"`
}

type tokenList struct {
	Sources []source `json:"sources"`
	Tokens  []struct {
		ChainID    uint64 `json:"chainId"`
		Address    string `json:"address"`
		Extensions source `json:"extensions"`
		ERC3009    any    `json:"erc3009"`
	} `json:"tokens"`
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decode[T any](t *testing.T, name string) (value T) {
	t.Helper()
	if err := json.Unmarshal(read(t, name), &value); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// README.md says how many chains have a published block time, finality or number of confirmations.
func TestChains(t *testing.T) {
	t.Parallel()
	timed, finalized, deeper := 0, 0, 0
	for _, chain := range decode[chainList](t, "chains.json").Chains {
		if chain.BlockTimeMS != 0 {
			timed++
		}
		switch {
		case chain.Finality == "finalized":
			finalized++
		case chain.Finality != "":
			t.Errorf("%s: finality %s", chain.ChainID, chain.Finality)
		}
		switch {
		case chain.Confirmations > 12:
			deeper++
		case chain.Confirmations != 0:
			t.Errorf("%s: %d confirmations, fewer than by default", chain.ChainID, chain.Confirmations)
		}
	}
	readme := string(read(t, "README.md"))
	for _, words := range []string{
		fmt.Sprintf("which %d of the chains have", timed),
		fmt.Sprintf("%d chains are `finalized` by it", finalized),
		fmt.Sprintf("and %d asks for more than the default of 12", deeper),
	} {
		if !strings.Contains(readme, words) {
			t.Errorf("README.md does not say %q", words)
		}
	}
}

// core tests that the lists fit each other and its rules. Here, every chain has its coin, and test nets the tokens that tests are made with.
func TestTokens(t *testing.T) {
	t.Parallel()
	environment := map[uint64]string{}
	for _, chain := range decode[chainList](t, "chains.json").Chains {
		id, err := caip.ParseChainID(chain.ChainID)
		if err != nil {
			t.Fatal(err)
		}
		number, _ := id.Number()
		environment[number] = chain.Environment
	}
	list := decode[tokenList](t, "tokens.json")
	present, inEnvironment, signed := map[string]bool{}, map[string]int{}, 0
	for _, token := range list.Tokens {
		present[fmt.Sprintf("%d:%s", token.ChainID, token.Address)] = true
		inEnvironment[environment[token.ChainID]]++
		if token.ERC3009 != nil {
			signed++
		}
	}
	for number := range environment {
		// Tempo (4217) has no coin.
		if native := fmt.Sprintf("%d:%s", number, nativeAddress); present[native] != (number != 4217) {
			t.Errorf("%s: present is %t", native, present[native])
		}
	}
	for _, id := range []string{
		"11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", "11155111:0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14", // USDC, WETH
		"84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e", "84532:0x4200000000000000000000000000000000000006",
		"421614:0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d", "421614:0x980B62Da83eFf3D4576C647993b0c1D7faf17c73",
		"11155420:0x5fd84259d66Cd46123540766Be93DFE6D43130D7", "11155420:0x4200000000000000000000000000000000000006",
	} {
		if !present[id] {
			t.Errorf("the list lacks %s", id)
		}
	}
	readme := string(read(t, "README.md"))
	for _, line := range []string{
		fmt.Sprintf("| %d eip155 chains: ", len(environment)),
		fmt.Sprintf("| %s tokens on those chains (%s live, %d test) ",
			thousands(len(list.Tokens)), thousands(inEnvironment["live"]), inEnvironment["test"]),
		fmt.Sprintf("%d rows have `erc3009`", signed),
	} {
		if !strings.Contains(readme, line) {
			t.Errorf("README.md does not say %q", line)
		}
	}
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// Every row has a source of the list, and every source a permissive licence, whose text is in NOTICE.
func TestSources(t *testing.T) {
	t.Parallel()
	chains, tokens := decode[chainList](t, "chains.json"), decode[tokenList](t, "tokens.json")
	lock := decode[struct {
		Packages map[string]struct {
			Version   string `json:"version"`
			Integrity string `json:"integrity"`
		} `json:"packages"`
	}](t, "package-lock.json")
	notice, readme := string(read(t, "NOTICE")), string(read(t, "README.md"))

	rows, licenses := map[string]int{}, map[string]string{}
	for _, s := range tokens.Sources {
		rows[s.Source], licenses[s.Source] = s.Rows, s.License
		if line := fmt.Sprintf("| `%s` | %s | %s |", s.Source, s.License, thousands(s.Rows)); !strings.Contains(readme, line) {
			t.Errorf("README.md has no row that begins with %q", line)
		}
	}
	counted := map[string]int{}
	for i, token := range tokens.Tokens {
		counted[token.Extensions.Source]++
		if got, want := token.Extensions.License, licenses[token.Extensions.Source]; got != want || got == "" {
			t.Errorf("row %d: license %q, its source has %q", i, got, want)
		}
	}
	if diff := cmp.Diff(counted, rows); diff != "" {
		t.Errorf("rows of each source (-counted +stated):\n%s", diff)
	}
	for _, s := range slices.Concat(chains.Sources, tokens.Sources) {
		if !slices.Contains(permissive, s.License) {
			t.Errorf("%s: license %s", s.Source, s.License)
		}
		if s.Source == "confirmed by hand" {
			continue
		}
		at := strings.LastIndexByte(s.Source, '@')
		locked := lock.Packages["node_modules/"+s.Source[:at]]
		if locked.Version != s.Source[at+1:] || locked.Integrity != s.Integrity {
			t.Errorf("%s, %s: the lock file has %+v", s.Source, s.Integrity, locked)
		}
		_, terms, found := strings.Cut(notice, fmt.Sprintf("%s (%s)\n\n", s.Source, s.License))
		if terms, _, _ = strings.Cut(terms, "===="); !found || !strings.Contains(terms, "Permission is hereby granted, free of charge") {
			t.Errorf("NOTICE has no terms of %s", s.Source)
		}
	}
}
