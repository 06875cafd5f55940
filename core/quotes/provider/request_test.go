package provider_test

import (
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/quote"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/golden"
)

// sent is what a provider receives.
type sent struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Header http.Header     `json:"header"`
	Body   json.RawMessage `json:"body"`
}

// The requests of both dialects are those of testdata.
func TestProvider_Ask_Request(t *testing.T) {
	t.Parallel()
	nativeInput := func(kind quote.Kind) provider.Request {
		r := route(kind)
		r.Source.Token.Address = native
		return r
	}
	large := route(quote.ExactInput)
	large.Source.Amount = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	for name, r := range map[string]provider.Request{
		"exact_input": route(quote.ExactInput), "exact_output": route(quote.ExactOutput), "native_input": nativeInput(quote.ExactInput),
		"native_exact_output": nativeInput(quote.ExactOutput), "largest_amount": large,
	} {
		for _, kind := range []provider.Kind{provider.LIFI, provider.OIF} {
			t.Run(string(kind)+"_"+name, func(t *testing.T) {
				t.Parallel()
				var got sent
				e := at(kind, serve(t, func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					got = sent{r.Method, r.URL.String(), r.Header, body}
					_, _ = io.WriteString(w, `{"quotes": []}`)
				})+"/base/?key=of-the-url")
				e.Headers = map[string]telemetry.Secret{"X-Integrator-Key": "of-the-header"}
				s := newSubject(t, e, nil)
				if offers, failure := s.Ask(t.Context(), account, r, now); len(offers) > 0 || failure.Code != quote.NoQuote {
					t.Fatal(offers, failure)
				}
				got.Header.Del("Content-Length")
				golden.JSON(t, "testdata/"+string(kind)+"_"+name+".json", got)
			})
		}
	}
}

// Providers are those of the environment, in the file's order.
func TestProviders_In(t *testing.T) {
	t.Parallel()
	var endpoints []provider.Endpoint
	for _, e := range []provider.Endpoint{
		{Name: "b", Environment: "live"}, {Name: "c", Environment: "test"}, {Name: "a", Environment: "live"},
	} {
		e.Kind, e.URL = provider.OIF, "https://quotes.example"
		endpoints = append(endpoints, e)
	}
	providers := provider.New(endpoints, provider.Options{})
	got := map[string][]string{}
	for _, environment := range []string{"live", "test", "other"} {
		for _, p := range providers.In(network.Environment(environment)) {
			got[environment] = append(got[environment], p.Name)
		}
	}
	if diff := cmp.Diff(map[string][]string{"live": {"b", "a"}, "test": {"c"}}, got); diff != "" {
		t.Error(diff)
	}
}

// The metrics of a provider exist before it is asked.
func TestNew_Metrics(t *testing.T) {
	t.Parallel()
	endpoint := at(provider.OIF, "https://quotes.example")
	endpoint.Orders = true
	families, err := newSubject(t, endpoint, nil).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, family := range families {
		series[family.GetName()] = len(family.GetMetric())
	}
	want := map[string]int{
		"intents_core_quote_requests_total": 1, "intents_core_quote_failures_total": 7, "intents_core_quote_seconds": 1, "intents_core_quote_dropped_total": 11,
		"intents_core_order_submissions_total": 9,
	}
	if diff := cmp.Diff(want, series); diff != "" {
		t.Error(diff)
	}
}
