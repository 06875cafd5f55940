package registry_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

func TestReadChainList(t *testing.T) {
	t.Parallel()
	const currency = `"nativeCurrency":{"name":"Ether","symbol":"ETH","decimals":18}`
	ether := registry.Currency{Name: "Ether", Symbol: "ETH", Decimals: 18}
	published := func(number uint64, change func(*registry.ChainEntry)) *registry.ChainEntry {
		e := &registry.ChainEntry{
			Chain: registry.Chain{
				ID: caip.EIP155Chain(number), Name: "A", Environment: network.Live, NativeCurrency: ether,
				Confirmations: 12, Finality: registry.Depth, BlockTime: 12 * time.Second,
			},
			KeepSettlements: true, KeepConfirmations: true, KeepFinality: true, KeepBlockTime: true, KeepRPCURLs: true, KeepWrappedNative: true, KeepExplorer: true,
		}
		change(e)
		return e
	}
	row := func(number int, rest string) string {
		return fmt.Sprintf(`{"chainId":"eip155:%d","name":"A","environment":"live",%s%s}`, number, currency, rest)
	}
	longest := "https://" + strings.Repeat("a", registry.MaxURLBytes-len("https://"))
	type listed struct {
		row    string
		want   *registry.ChainEntry
		reason string
	}
	rows := []listed{
		{
			row:  row(1, ""),
			want: published(1, func(*registry.ChainEntry) {}),
		},
		{
			row: `{"chainId":"eip155:5","name":"B","environment":"test",` + currency + `,"settlements":[` + settlementJSON("") + `]}`,
			want: published(5, func(e *registry.ChainEntry) {
				e.Name, e.Environment = "B", network.Test
				e.KeepSettlements, e.Settlements = false, []registry.Settlement{settled}
			}),
		},
		{
			row: row(6, `,"settlements":null,"confirmations":null,"finality":null,"blockTimeMs":null`),
			want: published(6, func(e *registry.ChainEntry) {
				e.KeepSettlements, e.KeepConfirmations, e.KeepFinality, e.KeepBlockTime, e.DefaultDepth = false, false, false, false, true
			}),
		},
		{
			row: row(7, `,"confirmations":1,"finality":"safe","blockTimeMs":50,"settlements":[]`),
			want: published(7, func(e *registry.ChainEntry) {
				e.KeepSettlements, e.KeepConfirmations, e.KeepFinality, e.KeepBlockTime = false, false, false, false
				e.Confirmations, e.Finality, e.BlockTime = 1, registry.Safe, 50*time.Millisecond
			}),
		},
		{
			row: row(8, `,"finality":"finalized","confirmations": 10000 ,"blockTimeMs":600000,"settlements":[`+settlementJSON("")+`]`),
			want: published(8, func(e *registry.ChainEntry) {
				e.KeepSettlements, e.KeepConfirmations, e.KeepFinality, e.KeepBlockTime = false, false, false, false
				e.Confirmations, e.Finality, e.BlockTime = 10_000, registry.Finalized, 10*time.Minute
				e.Settlements = []registry.Settlement{settled}
			}),
		},
		{row: row(9999999999999999, ""), want: published(9999999999999999, func(*registry.ChainEntry) {})},
		{row: row(10, `,"blockTimeMs":2000`), want: published(10, func(e *registry.ChainEntry) { e.KeepBlockTime, e.BlockTime, e.Confirmations = false, 2*time.Second, 30 })},
		{row: row(16, `,"blockTimeMs":250`), want: published(16, func(e *registry.ChainEntry) {
			e.KeepBlockTime, e.BlockTime, e.Confirmations = false, 250*time.Millisecond, 240
		})},
		{row: row(17, `,"blockTimeMs":50,"confirmations":null`), want: published(17, func(e *registry.ChainEntry) {
			e.KeepBlockTime, e.KeepConfirmations, e.DefaultDepth, e.BlockTime, e.Confirmations = false, false, true, 50*time.Millisecond, 1200
		})},
		{row: row(18, `,"blockTimeMs":600000`), want: published(18, func(e *registry.ChainEntry) { e.KeepBlockTime, e.BlockTime = false, 10*time.Minute })},
		{row: row(11, `,"finality":"depth"`), want: published(11, func(e *registry.ChainEntry) { e.KeepFinality = false })},
		{row: row(12, `,"rpcUrls":["https://rpc.example.org/v1","http://127.0.0.1:8545","http://localhost","http://[::1]:8546/"]`), want: published(12, func(e *registry.ChainEntry) {
			e.KeepRPCURLs, e.RPCURLs = false, []string{"https://rpc.example.org/v1", "http://127.0.0.1:8545", "http://localhost", "http://[::1]:8546/"}
		})},
		{row: row(13, `,"rpcUrls":null`), want: published(13, func(e *registry.ChainEntry) { e.KeepRPCURLs = false })},
		{row: row(14, `,"rpcUrls":[]`), want: published(14, func(e *registry.ChainEntry) { e.KeepRPCURLs = false })},
		{row: row(15, `,"rpcUrls":["`+longest+`"`+strings.Repeat(`,"https://a"`, 7)+`]`), want: published(15, func(e *registry.ChainEntry) {
			e.KeepRPCURLs, e.RPCURLs = false, append([]string{longest}, slices.Repeat([]string{"https://a"}, 7)...)
		})},
		{row: row(19, `,"wrappedNative":"WBNB"`), want: published(19, func(e *registry.ChainEntry) { e.KeepWrappedNative, e.WrappedNative = false, "WBNB" })},
		{row: row(20, `,"wrappedNative":null`), want: published(20, func(e *registry.ChainEntry) { e.KeepWrappedNative = false })},
		{row: row(21, `,"explorer":"https://explorer.example.org"`), want: published(21, func(e *registry.ChainEntry) {
			e.KeepExplorer, e.Explorer = false, "https://explorer.example.org"
		})},
		{row: row(22, `,"explorer":"http://127.0.0.1:5100/chain/"`), want: published(22, func(e *registry.ChainEntry) {
			e.KeepExplorer, e.Explorer = false, "http://127.0.0.1:5100/chain"
		})},
		{row: row(23, `,"explorer":null`), want: published(23, func(e *registry.ChainEntry) { e.KeepExplorer = false })},
		{row: row(24, `,"explorer":"`+longest+`"`), want: published(24, func(e *registry.ChainEntry) { e.KeepExplorer, e.Explorer = false, longest })},
		{row: row(9, `,"explorer":7`), reason: "explorer must be a string"},
		{row: row(9, `,"explorer":"`+longest+`a"`), reason: "explorer must have at most 256 bytes"},
		{row: row(9, `,"wrappedNative":""`), reason: "wrappedNative must be the symbol of a token, of 1 to 32 printable characters"},
		{row: row(9, `,"wrappedNative":7`), reason: "wrappedNative must be the symbol of a token, of 1 to 32 printable characters"},
		{row: row(9, `,"wrappedNative":"`+strings.Repeat("W", 33)+`"`), reason: "wrappedNative must be the symbol of a token, of 1 to 32 printable characters"},
		{row: row(9, `,"rpcUrls":["https://a"`+strings.Repeat(`,"https://a"`, 8)+`]`), reason: "rpcUrls must be an array of at most 8 strings"},
		{row: row(9, `,"rpcUrls":"https://a"`), reason: "rpcUrls must be an array of at most 8 strings"},
		{row: row(9, `,"rpcUrls":[1]`), reason: "rpcUrls must be an array of at most 8 strings"},
		{row: row(9, `,"rpcUrls":["https://a","`+longest+`a"]`), reason: "rpcUrls[1] must have at most 256 bytes"},
		{row: `7`, reason: "not a chain"},
		{row: `{"chainId":"eip155:1","name":"Again","environment":"live",` + currency + `}`, reason: "chain eip155:1 stands earlier in the same list"},
		{row: `{"chainId":"1","name":"C","environment":"live",` + currency + `}`, reason: "chainId must be a CAIP-2 chain id"},
		{row: `{"chainId":"eip155:9","name":"C",` + currency + `}`, reason: `environment must be "test" or "live"`},
		{row: `{"chainId":"eip155:9","name":"","environment":"live",` + currency + `}`, reason: "name must have"},
		{row: `{"chainId":"eip155:9","name":"C","environment":"live"}`, reason: "nativeCurrency.decimals is required"},
		{row: `{"chainId":"cosmos:hub-3","name":"C","environment":"live",` + currency + `}`, reason: "namespace cosmos is not supported"},
		{row: `{"chainId":"eip155:9","name":"C","environment":"live",` + currency + `,"domain":9}`, reason: `unknown field "domain"`},
		{row: `{"chainId":"eip155:9","name":"C","environment":"live",` + currency + `,"settler":{}}`, reason: `unknown field "settler"`},
		{row: `{"chainId":"eip155:9","name":"C","environment":"live","nativeCurrency":{"symbol":"ETH","decimals":18,"logo":""}}`, reason: `unknown field "logo"`},
		{row: row(9, `,"settlements":[`+settlementJSON(`,"bridge":true`)+`]`), reason: `settlements[0]: json: unknown field "bridge"`},
		{row: row(9, `,"finality":"latest"`), reason: `finality must be "depth", "safe" or "finalized", not "latest"`},
		{row: row(9, `,"finality":""`), reason: `finality must be "depth", "safe" or "finalized", not ""`},
		{row: row(9, `,"finality":12`), reason: "finality must be a string"},
	}
	for _, number := range []string{`0`, `10001`, `-1`, `12.5`, `12.0`, `1e1`, `"12"`, `true`, `[]`, `{}`, `18446744073709551616`} {
		rows = append(rows, listed{row: row(9, `,"confirmations":`+number), reason: "confirmations must be a whole number from 1 to 10000, in digits"})
	}
	for _, number := range []string{`49`, `600001`, `250.5`, `2e3`, `"2000"`} {
		rows = append(rows, listed{row: row(9, `,"blockTimeMs":`+number), reason: "blockTimeMs must be a whole number from 50 to 600000, in digits"})
	}
	for reason, urls := range map[string][]string{
		"must be an absolute URL":  {"", "rpc.example.org", "https:", "https:///v1", "https://:8545", "https://a b", "https://a/b c", "https://a/é", "https://a:port", "HTTPS://a"},
		"must be https":            {"http://rpc.example.org", "http://10.0.0.1", "http://localhost.example.org", "http://127.0.0.1.example.org", "ws://localhost", "wss://a", "//rpc.example.org", "file://a/b", "javascript://a/b"},
		"must have no user, passw": {"https://secret@a", "https://user:secret@a", "https://@a", "https://a?key=secret", "https://a?", "https://a#secret"},
	} {
		for _, text := range urls {
			rows = append(rows,
				listed{row: row(9, fmt.Sprintf(`,"rpcUrls":[%q]`, text)), reason: "rpcUrls[0] " + reason},
				listed{row: row(9, fmt.Sprintf(`,"explorer":%q`, text)), reason: "explorer " + reason})
		}
	}
	var given []string
	var want []registry.ChainEntry
	reasons := map[int]string{}
	for i, r := range rows {
		given = append(given, r.row)
		if r.want != nil {
			want = append(want, *r.want)
		} else {
			reasons[i] = r.reason
		}
	}
	list, err := registry.ReadChainList(strings.NewReader(`{"chains":[` + strings.Join(given, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list.Chains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
	for _, refused := range list.Refused {
		if strings.Contains(refused.Reason, "secret") {
			t.Errorf("the reason shows a credential: %s", refused.Reason)
		}
		if reason, ok := reasons[refused.Row]; !ok || !strings.Contains(refused.Reason, reason) {
			t.Errorf("row %d refused with %q, want %q", refused.Row, refused.Reason, reason)
		}
		delete(reasons, refused.Row)
	}
	if len(reasons) > 0 {
		t.Errorf("not refused: %v", reasons)
	}
}

func TestReadChainList_Invalid(t *testing.T) {
	t.Parallel()
	for _, file := range []string{``, `x`, `[]`, `{}`, `{"chains":{}}`, `{"chains":[]}`} {
		if _, err := registry.ReadChainList(strings.NewReader(file)); err == nil {
			t.Errorf("took %q for a chain list", file)
		}
	}
}

// The list that ships has no row that would be refused and both environments.
func TestDefaultChainList(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../deploy/data/chains.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list, err := registry.ReadChainList(file)
	if err != nil || len(list.Refused) > 0 {
		t.Fatalf("%v, refused %v", err, list.Refused)
	}
	count := map[network.Environment]int{}
	for _, entry := range list.Chains {
		count[entry.Environment]++
		if entry.Settlements != nil {
			t.Errorf("%s ships with settlements", entry.ID)
		}
	}
	if count[network.Test] < 8 || count[network.Live] < 15 {
		t.Errorf("chains by environment: %v", count)
	}
}
