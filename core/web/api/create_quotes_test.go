package api_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/retrytest"
)

var (
	exactInput  = webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnBase, webtest.BaseUSDC, "", "")
	exactOutput = webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "", webtest.BobOnBase, webtest.BaseUSDC, "5", "")
)

func TestCreateQuotes(t *testing.T) {
	t.Parallel()
	honest, down := providertest.Start(t, "solver", network.Test), providertest.Start(t, "aggregator", network.Test)
	down.SetAnswer(providertest.Status(502, ""))
	s := start(t, quoting(t, honest, down))
	key := webtest.Keyed(uuid.New(), "test")
	s.Example(t, "what an amount brings", "POST", "/v2/quotes", exactInput, key...)
	down.SetAnswer(providertest.Status(200, `{"quotes":[]}`))
	s.Example(t, "what an amount costs", "POST", "/v2/quotes", exactOutput, key...)
	asked := down.Requests()
	s.Example(t, "a swap, of one provider", "POST", "/v2/quotes", webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, webtest.SepoliaWETH, "", `,"providers":["solver"]`), key...)
	if down.Requests() != asked {
		t.Error("another provider was asked too")
	}
}

// Each of three providers is down alone, which leaves the quotes of the others, and then all are.
func TestCreateQuotes_ProvidersDown(t *testing.T) {
	t.Parallel()
	solvers := []*providertest.Solver{providertest.Start(t, "a", network.Test), providertest.Start(t, "b", network.Test), providertest.Start(t, "c", network.Test)}
	s := start(t, quoting(t, solvers...))
	key := webtest.Keyed(uuid.New(), "test")
	// ask returns the status, the providers with quotes and those that failed.
	ask := func() (got [3]any) {
		answer := s.Call(t, "POST", "/v2/quotes", exactInput, key...)
		body, _ := answer.Body.(map[string]any)
		if details, refused := body["details"].(map[string]any); refused {
			body = details
		}
		got[0] = answer.Status
		for n, list := range []string{"quotes", "failures"} {
			names := []string{}
			rows, _ := body[list].([]any)
			for _, row := range rows {
				members, _ := row.(map[string]any)
				name := fmt.Sprint(members["provider"])
				if code, failed := members["code"]; failed {
					name += fmt.Sprint(" ", code)
				}
				names = append(names, name)
			}
			slices.Sort(names)
			got[n+1] = names
		}
		return got
	}
	quoted, failed := []string{"a", "b", "c"}, []string{"a PROVIDER_UNAVAILABLE", "b PROVIDER_UNAVAILABLE", "c PROVIDER_UNAVAILABLE"}
	for n, down := range solvers {
		down.SetAnswer(providertest.Status(503, ""))
		want := [3]any{200, slices.Delete(slices.Clone(quoted), n, n+1), failed[n : n+1]}
		if diff := cmp.Diff(want, ask()); diff != "" {
			t.Errorf("%s is down (-want +got):\n%s", down.Endpoint.Name, diff)
		}
		down.SetAnswer(providertest.Quotes{Gives: []string{"4"}}.ServeHTTP)
	}
	for _, down := range solvers {
		down.SetAnswer(providertest.Status(503, ""))
	}
	if diff := cmp.Diff([3]any{503, []string{}, failed}, ask()); diff != "" {
		t.Errorf("all are down (-want +got):\n%s", diff)
	}
}

func TestCreateQuotes_NoQuote(t *testing.T) {
	t.Parallel()
	one, other := providertest.Start(t, "solver", network.Test), providertest.Start(t, "aggregator", network.Test)
	s := start(t, quoting(t, one, other))
	key := webtest.Keyed(uuid.New(), "test")
	one.SetAnswer(providertest.Status(200, `{"quotes":[]}`))
	other.SetAnswer(providertest.Status(500, ""))
	s.Example(t, "nobody quotes", "POST", "/v2/quotes", exactInput, key...)
	one.SetAnswer(providertest.Status(500, ""))
	other.SetAnswer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(429)
	})
	got := s.Example(t, "nobody answers", "POST", "/v2/quotes", exactInput, key...)
	if after := got.Header["Retry-After"]; retrytest.Least(got.Status, after, "3") != "3" {
		t.Errorf("Retry-After: %q", after)
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM quotes`); n != 0 {
		t.Errorf("%d quotes are stored", n)
	}
}

func TestCreateQuotes_Refused(t *testing.T) {
	t.Parallel()
	asked := providertest.Start(t, "solver", network.Test)
	s := start(t, quoting(t, asked))
	key := webtest.Keyed(uuid.New(), "test")
	for name, request := range map[string]string{
		"no amount":                 webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "", webtest.BobOnBase, webtest.BaseUSDC, "", ""),
		"both amounts":              webtest.BridgeBody,
		"an amount as a number":     strings.Replace(exactInput, `"5"`, `5`, 1),
		"an unknown provider":       strings.Replace(exactInput, `{`, `{"providers":["solver","lifi"],`, 1),
		"a chain of live keys":      strings.ReplaceAll(exactInput, "eip155:84532", "eip155:1"),
		"a transfer":                webtest.TransferBody,
		"an unknown chain":          strings.ReplaceAll(exactInput, "eip155:84532", "eip155:404"),
		"nothing arrives":           strings.Replace(exactOutput, `"5"`, `"0"`, 1),
		"a deadline too soon":       strings.Replace(exactInput, `{`, `{"deadline":"2020-01-01T00:00:00Z",`, 1),
		"no settler at the target":  webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnArbitrum, webtest.ArbitrumUSDC, "", ""),
		"a body that is too long":   `{"reference":"` + strings.Repeat("x", 16<<10) + `"}`,
		"a field of POST transfers": strings.Replace(exactInput, `{`, `{"reference":"inv-42",`, 1),
	} {
		s.Example(t, name, "POST", "/v2/quotes", request, key...)
	}
	s.Example(t, "another media type", "POST", "/v2/quotes", exactInput, append(key, "Content-Type", "text/plain")...)
	webtest.Same(t, "query", webtest.Invalid(t, "now", "is not a known parameter"), s.Call(t, "POST", "/v2/quotes?now=1", exactInput, key...))
	if n := asked.Requests(); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
}

func TestCreateQuotes_RouteUnsupported(t *testing.T) {
	t.Parallel()
	asked := providertest.Start(t, "solver", network.Test)
	asked.Endpoint.Deployment = "another"
	s := start(t, quoting(t, asked))
	s.Example(t, "a deployment that nobody serves", "POST", "/v2/quotes", exactInput, webtest.Keyed(uuid.New(), "test")...)
}

// What the registry refuses is told before what is not configured.
func TestCreateQuotes_NotConfigured(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := webtest.Keyed(uuid.New(), "test")
	s.Example(t, "no provider", "POST", "/v2/quotes", exactInput, key...)
	got := s.Call(t, "POST", "/v2/quotes", webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnArbitrum, webtest.ArbitrumUSDC, "", ""), key...)
	if code := got.Body.(map[string]any)["code"]; code != "SETTLER_NOT_CONFIGURED" {
		t.Errorf("code %v", code)
	}
}

// A provider is asked for keys of its own environment alone, and the other environment's is as unknown as any.
func TestCreateQuotes_Environment(t *testing.T) {
	t.Parallel()
	test, live := providertest.Start(t, "test-solver", network.Test), providertest.Start(t, "live-solver", network.Live)
	store := pgtest.New(t)
	lonely, both := startOn(t, store, quoting(t, test)), startOn(t, store, quoting(t, test, live))
	pgtest.Exec(t, store, `UPDATE chains SET settlements = (SELECT settlements FROM chains WHERE id = 'eip155:11155111') WHERE id = 'eip155:1'`)
	pgtest.Exec(t, store, `INSERT INTO tokens (chain_id, address, symbol, decimals)
		VALUES ('eip155:1', '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2', 'WETH', 18)`)
	for _, s := range []*service{lonely, both} {
		if err := s.Live.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mainnet := webtest.Body(webtest.AliceOnMainnet, webtest.MainnetUSDC, "5", webtest.BobOnMainnet, "eip155:1:0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", "", "")
	key := webtest.Keyed(uuid.New(), "live")
	if got := lonely.Call(t, "POST", "/v2/quotes", mainnet, key...); got.Status != 422 || got.Body.(map[string]any)["code"] != "QUOTES_NOT_CONFIGURED" {
		t.Errorf("with a provider of testnets alone: %+v", got)
	}
	if got := both.Call(t, "POST", "/v2/quotes", mainnet, key...); got.Status != 200 || live.Requests() != 1 {
		t.Errorf("with one of each: %+v", got)
	}
	if got := both.Call(t, "POST", "/v2/quotes", exactInput, webtest.Keyed(uuid.New(), "test")...); got.Status != 200 || test.Requests() != 1 || live.Requests() != 1 {
		t.Errorf("a test key, with one of each: %+v; %d and %d requests", got, test.Requests(), live.Requests())
	}
	webtest.Same(t, "by name", webtest.Invalid(t, "/providers/0", "is not a provider of quotes for live keys; leave providers out to ask all"),
		both.Call(t, "POST", "/v2/quotes", strings.Replace(mainnet, `{`, `{"providers":["test-solver"],`, 1), key...))
	if n := test.Requests(); n != 1 {
		t.Errorf("the testnets' provider was asked %d times, with one request of a test key", n)
	}
}

// Whoever makes a transfer without a quote waits for no provider.
func TestCreateTransfer_HangingProvider(t *testing.T) {
	t.Parallel()
	asked := providertest.Start(t, "solver", network.Test)
	arrived := make(chan struct{})
	asked.SetAnswer(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // its end lets the server see that the client has gone
		close(arrived)
		<-r.Context().Done()
	})
	s := start(t, quoting(t, asked))
	key := webtest.Keyed(uuid.New(), "test")
	quoted := make(chan webtest.Answer, 1)
	go func() { quoted <- s.Call(t, "POST", "/v2/quotes", exactInput, key...) }()
	<-arrived
	if status, _, record := s.CreateTransfer(t, webtest.BridgeBody, key...); status != 201 {
		t.Errorf("%d %s", status, record)
	}
	select {
	case early := <-quoted:
		t.Errorf("the provider did not hang: %+v", early)
	default:
	}
	got := <-quoted
	want := webtest.Refused(t, 503, "QUOTES_UNAVAILABLE", "No provider of quotes answers; see details.failures. Wait as long as Retry-After says, then ask again.", "Retry-After", "5")
	want.Body.(map[string]any)["details"] = map[string]any{"failures": []any{map[string]any{"provider": "solver", "code": "PROVIDER_TIMEOUT"}}}
	webtest.Same(t, "answer", want, got)
	if n := asked.Requests(); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
}
