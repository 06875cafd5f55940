package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/caip"
)

const (
	fresh  = "private, no-cache"
	tag    = "W/<>"
	noData = ""
)

const (
	tokenMainnetUSDC = `{"symbol":"USDC","chainId":"eip155:1","address":"eip155:1:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48","decimals":6,"metadata":null,"erc3009":false,"name":null}`
	tokenSepoliaWETH = `{"symbol":"WETH","chainId":"eip155:11155111","address":"eip155:11155111:0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14","decimals":18,"metadata":null,"erc3009":false,"name":"Wrapped Ether"}`
	tokenSepolia     = `{"symbol":"ETH","chainId":"eip155:11155111","address":"eip155:11155111:0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE","decimals":18,"metadata":null,"erc3009":false,"name":null},
		{"symbol":"USDC","chainId":"eip155:11155111","address":"eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238","decimals":6,"metadata":"https://example.com/usdc.svg","erc3009":true,"name":null},
		` + tokenSepoliaWETH
	tokensAll = `[` + tokenMainnetUSDC + `,
		{"symbol":"USDC","chainId":"eip155:84532","address":"eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e","decimals":6,"metadata":null,"erc3009":false,"name":null},
		{"symbol":"USDC","chainId":"eip155:421614","address":"eip155:421614:0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d","decimals":6,"metadata":null,"erc3009":false,"name":null},
		` + tokenSepolia + `,
		{"symbol":"USDC","chainId":"eip155:99000000001","address":"eip155:99000000001:0x0000000000000000000000000000000000420042","decimals":6,"metadata":null,"erc3009":false,"name":null}]`
	chainsAll = `[
		{"chainId":"eip155:1","name":"Ethereum","environment":"live","nativeCurrency":{"symbol":"ETH","decimals":18},"settlements":[],"confirmations":12,"finality":"depth","watched":false,"explorer":null},
		{"chainId":"eip155:84532","name":"Base Sepolia","environment":"test","nativeCurrency":{"symbol":"ETH","decimals":18},"settlements":[
			{"scheme":"oif-v1/StandardOrder","deployment":"test","inputSettler":"0x0000000000000000000000000000010000084532","outputSettler":"0x0000000000000000000000000000020000084532",
			"oracle":"0x0000000000000000000000000000030000084532","claimPeriod":14400,"minDeadline":0,"native":true,"sameChain":false,"outputOracle":"destination","signing":[]}],"confirmations":12,"finality":"depth","watched":false,"explorer":null},
		{"chainId":"eip155:421614","name":"Arbitrum Sepolia","environment":"test","nativeCurrency":{"symbol":"ETH","decimals":18},"settlements":[],"confirmations":12,"finality":"depth","watched":false,"explorer":null},
		{"chainId":"eip155:11155111","name":"Sepolia","environment":"test","nativeCurrency":{"symbol":"ETH","decimals":18},"settlements":[
			{"scheme":"oif-v1/StandardOrder","deployment":"test","inputSettler":"0x0000000000000000000000000000010011155111","outputSettler":"0x0000000000000000000000000000020011155111",
			"oracle":"0x0000000000000000000000000000030011155111","claimPeriod":14400,"minDeadline":0,"native":true,"sameChain":true,"outputOracle":"destination","signing":["permit2","erc3009"]}],"confirmations":12,"finality":"depth","watched":false,"explorer":"https://sepolia.etherscan.io"},
		{"chainId":"eip155:99000000001","name":"Far Testnet, whose number fits no 32 bits","environment":"test","nativeCurrency":{"symbol":"FAR","decimals":9},"settlements":[
			{"scheme":"oif-v1/StandardOrder","deployment":"test","inputSettler":"0x0000000000000000000000000000010000004242","outputSettler":"0x0000000000000000000000000000020000004242",
			"oracle":"0x0000000000000000000000000000030000004242","claimPeriod":14400,"minDeadline":0,"native":true,"sameChain":true,"outputOracle":"destination","signing":[]}],"confirmations":12,"finality":"depth","watched":false,"explorer":null}]`
)

func TestListTokensAndChains(t *testing.T) {
	t.Parallel()
	s := start(t)
	for path, body := range map[string]string{
		"/v2/tokens":                                                   tokensAll,
		"/v2/tokens?chain-id=eip155:1":                                 `[` + tokenMainnetUSDC + `]`,
		"/v2/tokens?chain-id=eip155%3A1":                               `[` + tokenMainnetUSDC + `]`,
		"/v2/tokens?chain-id=eip155:11155111":                          `[` + tokenSepolia + `]`,
		"/v2/tokens?chain-id=eip155:404":                               `[]`,
		"/v2/tokens?chain-id=solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp":  `[]`,
		"/v2/tokens?search=wrapped%20e&chain-id=eip155:11155111":       `[` + tokenSepoliaWETH + `]`,
		"/v2/tokens?search=%20WRAPPED+ETHER%20":                        `[` + tokenSepoliaWETH + `]`,
		"/v2/tokens?search=0xfff9976782d46cc05630d1f6ebab18b2324d6b14": `[` + tokenSepoliaWETH + `]`,
		"/v2/tokens?search=usdc&chain-id=eip155:1":                     `[` + tokenMainnetUSDC + `]`,
		"/v2/tokens?search=usdc&chain-id=eip155:404":                   `[]`,
		"/v2/tokens?search=none":                                       `[]`,
		"/v2/chains":                                                   chainsAll,
	} {
		got := s.Call(t, "GET", path, noData, webtest.Keyed(uuid.New(), "live")...)
		webtest.Same(t, path, webtest.Want(t, 200, body, "Etag", tag, "Cache-Control", fresh), got)
	}
}

func TestListTokens_InvalidQuery(t *testing.T) {
	t.Parallel()
	s := start(t)
	const notCAIP2 = "must be a CAIP-2 chain id such as eip155:1"
	for query, issues := range map[string][]string{
		"chain-id=":                                  {"chain-id", notCAIP2},
		"chain-id=1":                                 {"chain-id", notCAIP2},
		"chain-id=eip155":                            {"chain-id", notCAIP2},
		"chain-id=EIP155:1":                          {"chain-id", notCAIP2},
		"chain-id=eip155:1:2":                        {"chain-id", notCAIP2},
		"chain-id=eip155:1%00":                       {"chain-id", "must not hold a NUL character"},
		"chain-id=eip155:01":                         {"chain-id", "the eip155 reference must be a decimal chain number of 1 to 16 digits without leading zeros"},
		"chain-id=eip155:1&chain-id=eip155:1":        {"chain-id", "is given twice"},
		"chainId=eip155:1":                           {"chainId", "is not a known parameter"},
		"z=1&chain-id=1&chain-id=1&a=1":              {"a", "is not a known parameter", "chain-id", "is given twice", "z", "is not a known parameter"},
		"chain-id=%zz":                               {"query", "is not a well-formed query string"},
		"chain-id=eip155:1;symbol=USDC":              {"query", "is not a well-formed query string"},
		"chain-id=eip155%3A1&limit=1":                {"limit", "is not a known parameter"},
		"chain-id=%F0%9F%98%80:1":                    {"chain-id", notCAIP2},
		"chain-id=eip155:1%20":                       {"chain-id", notCAIP2},
		"=":                                          {"", "is not a known parameter"},
		"chain-id=eip155:11155111%2C84532":           {"chain-id", notCAIP2},
		"chain-id=abcdefghi:1":                       {"chain-id", notCAIP2},
		"chain-id=eip155:12345678901234567":          {"chain-id", "the eip155 reference must be a decimal chain number of 1 to 16 digits without leading zeros"},
		"search=":                                    {"search", "must have 1 to 64 characters"},
		"search=%20&chain-id=eip155:1":               {"search", "must have 1 to 64 characters"},
		"search=usdc&chain-id=1":                     {"chain-id", notCAIP2},
		"search=a&search=b":                          {"search", "is given twice"},
		"search=" + strings.Repeat("%E2%82%AE", 65):  {"search", "must have 1 to 64 characters"},
		"chain-id=cosmos:" + strings.Repeat("a", 33): {"chain-id", notCAIP2},
	} {
		webtest.Same(t, query, webtest.Invalid(t, issues...), s.Call(t, "GET", "/v2/tokens?"+query, noData))
	}
	webtest.Same(t, "chains", webtest.Invalid(t, "chain-id", "is not a known parameter"), s.Call(t, "GET", "/v2/chains?chain-id=eip155:1", noData))
}

func TestListTokens_NotModified(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{"/v2/tokens", "/v2/tokens?chain-id=eip155:1", "/v2/tokens?search=usdc", "/v2/chains"} {
		first := s.Send(t, "GET", path, noData)
		webtest.ReadAll(t, first)
		etag := first.Header.Get("Etag")
		for _, held := range []string{etag, strings.TrimPrefix(etag, "W/"), `"other", ` + etag, "*"} {
			got := s.Call(t, "GET", path, noData, "If-None-Match", held)
			webtest.Same(t, path+" with "+held, webtest.Want(t, 304, noData, "Etag", tag, "Cache-Control", fresh), got)
		}
		if got := s.Call(t, "GET", path, noData, "If-None-Match", `"other"`); got.Status != 200 {
			t.Errorf("%s with another tag: %d", path, got.Status)
		}
	}
}

func TestListTokens_ETagChanges(t *testing.T) {
	t.Parallel()
	s := start(t)
	tagOf := func(path string) string {
		t.Helper()
		response := s.Send(t, "GET", path, noData)
		webtest.ReadAll(t, response)
		return response.Header.Get("Etag")
	}
	chains, tokens := tagOf("/v2/chains"), tagOf("/v2/tokens")
	entry := registry.ChainEntry{KeepSettlements: true}
	entry.Chain, _ = s.Live.Current().Chain(caip.EIP155Chain(1))
	entry.Confirmations, entry.Finality = 64, registry.Safe
	if _, err := s.Store.Registry.ImportChains(t.Context(), []registry.ChainEntry{entry}, time.Now(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	if err := s.Live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tagOf("/v2/chains") == chains {
		t.Error("the chains changed and their tag did not")
	}
	changed := strings.Replace(chainsAll, `"confirmations":12,"finality":"depth"`, `"confirmations":64,"finality":"safe"`, 1)
	webtest.Same(t, "the chains", webtest.Want(t, 200, changed, "Etag", tag, "Cache-Control", fresh), s.Call(t, "GET", "/v2/chains", noData))
	chains = tagOf("/v2/chains")
	pgtest.Exec(t, s.Store, `INSERT INTO watched_chains (chain_id, holder, epoch, lease_until, head_number, confirmed_block, final_block, read_at)
		VALUES ('eip155:1', 'a', 1, now() + interval '1 hour', 9, 8, 7, now())`)
	if err := s.Live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tagOf("/v2/chains") == chains {
		t.Error("a chain is watched and the tag of the chains did not change")
	}
	changed = strings.Replace(changed, `"watched":false`, `"watched":true`, 1)
	webtest.Same(t, "the chains", webtest.Want(t, 200, changed, "Etag", tag, "Cache-Control", fresh), s.Call(t, "GET", "/v2/chains", noData))
	if tagOf("/v2/tokens") != tokens {
		t.Error("the tag of the tokens changed and they did not")
	}
	s = startOn(t, s.Store)
	if tagOf("/v2/tokens") != tokens {
		t.Error("the tag of the tokens differs between two cores")
	}
}
