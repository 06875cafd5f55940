// Package providertest has a provider of quotes for tests.
package providertest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/outbound"
	"intents.internal/core/quotes/provider"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
)

// Quotes answers a request for quotes, of either kind of provider, with the sides that it names and the amount that it leaves out.
type Quotes struct {
	// Gives are the amounts that are offered for what is sent, a quote each.
	Gives []string
	// Takes is the amount that is asked for what arrives.
	Takes string
	// Sends replaces the amount that the request sends, if it is not empty.
	Sends string
	// Holds is how long the quotes hold, 0 for the minute that the request wants.
	Holds time.Duration
}

// ServeHTTP implements http.Handler.
func (q Quotes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type side map[string]any
	var request struct {
		Intent struct {
			Inputs, Outputs []side
			MinValidUntil   int64
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	asked := request.Intent
	until := asked.MinValidUntil
	if q.Holds != 0 {
		until += int64((q.Holds - time.Minute).Seconds())
	}
	quotes := []any{}
	quote := func(sent, given string) {
		in, out := maps.Clone(asked.Inputs[0]), maps.Clone(asked.Outputs[0])
		in["amount"], out["amount"] = sent, given
		quotes = append(quotes, map[string]any{
			"quoteId": uuid.NewString(), "validUntil": until, "eta": 30.5, "preview": map[string]any{"inputs": []side{in}, "outputs": []side{out}},
		})
	}
	if sent, _ := asked.Inputs[0]["amount"].(string); sent == "" {
		quote(q.Takes, fmt.Sprint(asked.Outputs[0]["amount"]))
	} else {
		if q.Sends != "" {
			sent = q.Sends
		}
		for _, amount := range q.Gives {
			quote(sent, amount)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"quotes": quotes})
}

// Status answers with a status and a body.
func Status(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// Solver is a provider of quotes.
type Solver struct {
	// Endpoint is where it is asked, of the OIF's kind and the deployment "test". A test changes it before it calls Providers.
	Endpoint provider.Endpoint

	requests       atomic.Int64
	answer, orders atomic.Pointer[http.HandlerFunc]
}

// Start serves until the test ends: 4 units for whatever is sent, and whatever arrives for 6.
func Start(t *testing.T, name string, environment network.Environment) *Solver {
	t.Helper()
	s := &Solver{}
	s.SetAnswer(Quotes{Gives: []string{"4"}, Takes: "6"}.ServeHTTP)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.Endpoint = provider.Endpoint{
		Name: name, Kind: provider.OIF, URL: telemetry.Secret(server.URL), Environment: environment, Deployment: "test",
		Timeout: time.Minute, // the machine may be busy
	}
	return s
}

// SetAnswer replaces the answer to requests for quotes.
func (s *Solver) SetAnswer(answer http.HandlerFunc) { s.answer.Store(&answer) }

// SetOrders has requests about signed orders answered apart.
func (s *Solver) SetOrders(answer http.HandlerFunc) { s.orders.Store(&answer) }

// Requests is how often it was asked for quotes.
func (s *Solver) Requests() int64 { return s.requests.Load() }

// ServeHTTP implements http.Handler.
func (s *Solver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if orders := s.orders.Load(); orders != nil && strings.HasPrefix(r.URL.Path, "/api/v1/orders") {
		(*orders)(w, r)
		return
	}
	s.requests.Add(1)
	(*s.answer.Load())(w, r)
}

// Providers are the clients of solvers, until the test ends.
func Providers(t *testing.T, metrics prometheus.Registerer, solvers ...*Solver) *provider.Providers {
	t.Helper()
	var endpoints []provider.Endpoint
	for _, s := range solvers {
		endpoints = append(endpoints, s.Endpoint)
	}
	providers := provider.New(endpoints, provider.Options{
		Networks: outbound.NewNetworks([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}), Registry: metrics, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(providers.Close)
	return providers
}

// Interoperable is an address on an EVM chain by EIP-7930.
func Interoperable(number uint64, address string) string {
	reference := new(big.Int).SetUint64(number).Bytes()
	return fmt.Sprintf("0x00010000%02x%x14%s", len(reference), reference, strings.ToLower(strings.TrimPrefix(address, "0x")))
}
