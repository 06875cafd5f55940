package registry_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

func TestReadTokenList(t *testing.T) {
	t.Parallel()
	const usdc = "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	signed := func(address, members string) string {
		return strings.TrimSuffix(`{"chainId":1,"address":"0x`+strings.Repeat(address, 40)+`","symbol":"S","decimals":6,`+members, ",") + `}`
	}
	rows := []struct{ row, reason string }{
		{row: `{"chainId":1,"address":"` + strings.ToLower(usdc) + `","symbol":"USDC","name":"USD Coin","decimals":6,"logoURI":"ipfs://x","extensions":{"a":1}}`},
		{row: `{"chainId":1,"address":"0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE","symbol":"ETH","decimals":18}`},
		{row: `{"chainId":1,"address":"0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE","symbol":"ETH","decimals":18,"name":"again"}`},
		{row: `{"chainId":1,"address":"0x00000000000000000000000000000000000000bb","symbol":"B","name":" Bee ","decimals":0,"extensions":{"source":"acme@1","license":"MIT OR Apache-2.0"}}`},
		{row: `{"chainId":1,"address":"0x00000000000000000000000000000000000000cc","symbol":"C","name":["no text"],"decimals":255,"extensions":{"source":{"is":"else"},"license":7}}`},
		{row: `{"chainId":2,"address":"` + usdc + `","symbol":"USDC","decimals":6}`},
		{row: `{"chainId":501000101,"address":"7vfCXTUXx5WJV5JADk17DUJ4ksgau7utNKj4b963voxs","symbol":"ETH","decimals":8}`},
		{row: `{"chainId":2,"address":"` + usdc + `","symbol":"USDC","decimals":6}`},
		{row: `{"chainId":1,"address":"0x00000000000000000000000000000000000000aa","symbol":"A","decimals":1,"extensions":{"license":"my own!"}}`, reason: "SPDX license expression"},
		{row: `{"chainId":1,"address":"0x00000000000000000000000000000000000000aa","symbol":"A","decimals":1,"extensions":{"source":"` + strings.Repeat("s", 257) + `"}}`, reason: "source must have at most 256"},
		{row: `{"chainId":1,"address":"` + usdc + `","symbol":"USDC2","decimals":6}`, reason: "stands earlier in the same list with other values; remove one of the two"},
		{row: `{"chainId":1,"address":"` + usdc + `","symbol":"USDC","decimals":18}`, reason: "stands earlier in the same list with other values; remove one of the two"},
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
		{row: signed("1", `"erc3009":{"name":"USD Coin","version":"2"}`)},
		{row: signed("2", `"erc3009":{"name":"USDT0","version":"1","form":"vrs"},"eip2612":{"name":"USDT0","version":"1"},"feeOnTransfer":true`)},
		{row: signed("5", `"name":"`+strings.Repeat("n", 128)+`"`)},
		{row: signed("6", `"name":"`+strings.Repeat("n", 129)+`"`)},
		{row: signed("7", `"name":"two\nlines"`)},
		{row: signed("3", `"erc3009":null,"eip2612":null,"feeOnTransfer":false`)},
		{row: signed("1", `"erc3009":{"name":"USD Coin","version":"2","form":"bytes"}`)}, // the same again
		{row: signed("1", `"erc3009":{"name":"USD Coin","version":"2","form":"vrs"}`), reason: "stands earlier in the same list with other values; remove one of the two"},
		{row: signed("1", `"erc3009":{"name":"USD Coin","version":"2"},"eip2612":{"name":"USD Coin","version":"2"}`), reason: "stands earlier in the same list with other values; remove one of the two"},
		{row: signed("1", ``), reason: "stands earlier in the same list with other values; remove one of the two"},
		{row: signed("4", `"erc3009":{"name":"","version":"2"}`), reason: "erc3009.name must have 1 to 64 printable characters"},
		{row: signed("4", `"erc3009":{"name":"A"}`), reason: "erc3009.version must have 1 to 64 printable characters"},
		{row: signed("4", `"erc3009":{"name":"A","version":"1","form":"rsv"}`), reason: `erc3009.form must be "bytes" or "vrs", not "rsv"`},
		{row: signed("4", `"erc3009":{"name":"A","version":"1","from":"vrs"}`), reason: `erc3009: json: unknown field "from"`},
		{row: signed("4", `"erc3009":{"name":"A","version":1}`), reason: "erc3009: json: cannot unmarshal number"},
		{row: signed("4", `"erc3009":true`), reason: "erc3009: json: cannot unmarshal bool"},
		{row: signed("4", `"eip2612":{"name":"`+strings.Repeat("A", 65)+`","version":"1"}`), reason: "eip2612.name must have 1 to 64 printable characters"},
		{row: signed("4", `"eip2612":{"name":"A","version":"1","form":"vrs"}`), reason: `eip2612: json: unknown field "form"`},
		{row: signed("4", `"feeOnTransfer":"yes"`), reason: "not a token"},
		{row: `{"chainId":1,"address":"0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE","symbol":"ETH","decimals":18,"feeOnTransfer":true}`, reason: "are of contracts; the native asset has none"},
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
	list, err := registry.ReadTokenList(file, func(id caip.ChainID) bool { return id == caip.EIP155Chain(1) })
	if err != nil {
		t.Fatal(err)
	}
	on := func(address string) caip.AccountID {
		return caip.AccountID{Chain: caip.EIP155Chain(1), Address: address}
	}
	want := []registry.Token{
		{ID: on(usdc), Symbol: "USDC", Name: "USD Coin", Decimals: 6, Metadata: "ipfs://x"},
		{ID: on(registry.NativeAddress), Symbol: "ETH", Decimals: 18},
		{ID: on("0x00000000000000000000000000000000000000bb"), Symbol: "B", Name: "Bee", Origin: registry.Origin{Source: "acme@1", License: "MIT OR Apache-2.0"}},
		{ID: on("0x00000000000000000000000000000000000000cc"), Symbol: "C", Decimals: 255},
		{
			ID: on("0x" + strings.Repeat("1", 40)), Symbol: "S", Decimals: 6,
			ERC3009: &registry.ERC3009{Name: "USD Coin", Version: "2", Form: registry.BytesForm},
		},
		{
			ID: on("0x" + strings.Repeat("2", 40)), Symbol: "S", Decimals: 6,
			ERC3009: &registry.ERC3009{Name: "USDT0", Version: "1", Form: registry.VRSForm},
			EIP2612: &registry.EIP712Domain{Name: "USDT0", Version: "1"}, FeeOnTransfer: true,
		},
		{ID: on("0x" + strings.Repeat("5", 40)), Symbol: "S", Name: strings.Repeat("n", 128), Decimals: 6},
		{ID: on("0x" + strings.Repeat("6", 40)), Symbol: "S", Decimals: 6},
		{ID: on("0x" + strings.Repeat("7", 40)), Symbol: "S", Decimals: 6},
		{ID: on("0x" + strings.Repeat("3", 40)), Symbol: "S", Decimals: 6},
	}
	if diff := cmp.Diff(map[uint64]int{2: 2, 501000101: 1}, list.Unknown); diff != "" {
		t.Errorf("rows of unknown chains (-want +got):\n%s", diff)
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

func TestReadTokenList_Invalid(t *testing.T) {
	t.Parallel()
	for _, file := range []string{``, `x`, `[]`, `{}`, `{"tokens":{}}`, `{"tokens":[]}`, `{"tokens":[0` + strings.Repeat(",0", 10_000) + `]}`} {
		if _, err := registry.ReadTokenList(strings.NewReader(file), nil); err == nil {
			t.Errorf("took %q for a token list", file)
		}
	}
}

// The list that ships fits the chains that ship. What else it promises is tested beside it.
func TestDefaultTokenList(t *testing.T) {
	t.Parallel()
	chains, err := os.Open("../../deploy/data/chains.json")
	if err != nil {
		t.Fatal(err)
	}
	defer chains.Close()
	shipped, err := registry.ReadChainList(chains)
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
	list, err := registry.ReadTokenList(tokens, func(id caip.ChainID) bool { return known[id] })
	if err != nil || len(list.Refused) > 0 || len(list.Unknown) > 0 || len(list.Tokens) < 1000 {
		t.Fatalf("%v, %d tokens, refused %v, of unknown chains %v", err, len(list.Tokens), list.Refused, list.Unknown)
	}
	for _, definition := range list.Tokens {
		if definition.Source == "" || definition.License == "" {
			t.Errorf("%s has no origin", definition.ID)
		}
	}
}
