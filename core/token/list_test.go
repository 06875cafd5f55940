package token_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/chain"
	"intents.internal/core/token"
	"intents.internal/pkg/caip"
)

func TestReadList(t *testing.T) {
	t.Parallel()
	const usdc = "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	rows := []struct{ row, reason string }{
		{row: `{"chainId":1,"address":"` + strings.ToLower(usdc) + `","symbol":"USDC","name":"USD Coin","decimals":6,"logoURI":"ipfs://x","extensions":{"a":1}}`},
		{row: `{"chainId":1,"address":"0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE","symbol":"ETH","decimals":18}`},
		{row: `{"chainId":1,"address":"` + usdc + `","symbol":"USDC2","decimals":6}`, reason: "stands earlier in the same list"},
		{row: `{"chainId":2,"address":"` + usdc + `","symbol":"USDC","decimals":6}`, reason: "chain eip155:2 is not registered"},
		{row: `{"chainId":0,"address":"` + usdc + `","symbol":"USDC","decimals":6}`, reason: "chainId the eip155 reference"},
		{row: `{"chainId":"1","address":"` + usdc + `","symbol":"USDC","decimals":6}`, reason: "not a token"},
		{row: `{"chainId":1,"address":"0x1C7D4B196Cb0C7B01d743Fbc6116a902379C7238","symbol":"USDC","decimals":6}`, reason: "wrong EIP-55 checksum"},
		{row: `{"chainId":1,"address":"0x0000000000000000000000000000000000000000","symbol":"ETH","decimals":18}`, reason: "zero address"},
		{row: `{"chainId":1,"address":"0x00000000000000000000000000000000000000aa","symbol":"A"}`, reason: "decimals is required"},
		{row: `{"chainId":1,"address":"0x00000000000000000000000000000000000000aa","symbol":"A","decimals":256}`, reason: "not a token"},
		{row: `{"chainId":1,"address":"0x00000000000000000000000000000000000000aa","symbol":" A","decimals":1}`, reason: "symbol must have"},
		{row: `{"chainId":1,"address":"0x00000000000000000000000000000000000000aa","symbol":"","decimals":1}`, reason: "symbol must have"},
		{row: `{"chainId":1,"address":"0x00000000000000000000000000000000000000aa","symbol":"` + strings.Repeat("A", 33) + `","decimals":1}`, reason: "symbol must have"},
		{row: `{"chainId":1,"address":"0x00000000000000000000000000000000000000aa","symbol":"A\u0000","decimals":1}`, reason: "symbol must have"},
		{row: `null`, reason: "chainId"},
	}
	var given []string
	reasons := map[int]string{}
	for i, r := range rows {
		given = append(given, r.row)
		if r.reason != "" {
			reasons[i] = r.reason
		}
	}
	file := strings.NewReader(`{"name":"Mine","tokens":[` + strings.Join(given, ",") + `]}`)
	list, err := token.ReadList(file, func(id caip.ChainID) bool { return id == caip.EIP155Chain(1) })
	if err != nil {
		t.Fatal(err)
	}
	on := func(address string) caip.AccountID {
		return caip.AccountID{Chain: caip.EIP155Chain(1), Address: address}
	}
	want := []token.Definition{
		{ID: on(usdc), Symbol: "USDC", Decimals: 6, Metadata: "ipfs://x"},
		{ID: on(token.NativeAddress), Symbol: "ETH", Decimals: 18},
	}
	if diff := cmp.Diff(want, list.Tokens); diff != "" || list.Name != "Mine" {
		t.Errorf("list %q, tokens (-want +got):\n%s", list.Name, diff)
	}
	for _, refused := range list.Refused {
		if reason, ok := reasons[refused.Row]; !ok || !strings.Contains(refused.Reason, reason) {
			t.Errorf("row %d refused with %q, want %q", refused.Row, refused.Reason, reason)
		}
		delete(reasons, refused.Row)
	}
	if len(reasons) > 0 {
		t.Errorf("not refused: %v", reasons)
	}
}

func TestReadListRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	for _, file := range []string{``, `x`, `[]`, `{}`, `{"tokens":{}}`, `{"tokens":[]}`} {
		if _, err := token.ReadList(strings.NewReader(file), nil); err == nil {
			t.Errorf("took %q for a token list", file)
		}
	}
}

// The list that ships fits the chains that ship, and has what a newcomer tries first.
func TestDefaultList(t *testing.T) {
	t.Parallel()
	chains, err := os.Open("../../deploy/data/chains.json")
	if err != nil {
		t.Fatal(err)
	}
	defer chains.Close()
	shipped, err := chain.ReadList(chains)
	if err != nil {
		t.Fatal(err)
	}
	known := map[caip.ChainID]bool{}
	for _, entry := range shipped.Chains {
		known[entry.ID] = true
	}
	tokens, err := os.Open("../../deploy/data/tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	defer tokens.Close()
	list, err := token.ReadList(tokens, func(id caip.ChainID) bool { return known[id] })
	if err != nil || len(list.Refused) > 0 {
		t.Fatalf("%v, refused %v", err, list.Refused)
	}
	present, natives := map[string]bool{}, 0
	for _, definition := range list.Tokens {
		present[definition.ID.String()] = true
		if token.Native(definition.ID) {
			natives++
		}
	}
	if len(list.Tokens) < 1000 || natives < 15 {
		t.Errorf("%d tokens, %d of them native", len(list.Tokens), natives)
	}
	for _, id := range []string{
		"eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238",
		"eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e",
		"eip155:11155111:" + token.NativeAddress,
		"eip155:1:" + token.NativeAddress,
	} {
		if !present[id] {
			t.Errorf("the list lacks %s", id)
		}
	}
}
