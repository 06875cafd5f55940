package api_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	quoteprovider "intents.internal/core/quotes/provider"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
)

// solver is a provider of quotes that speaks the API of the Open Intents Framework: it gives 4 units for whatever is sent, and takes 6 for
// whatever arrives, for a minute.
type solver struct {
	endpoint quoteprovider.Endpoint
	requests atomic.Int64
	// answer replaces its answers, nil for none.
	answer atomic.Pointer[http.HandlerFunc]
	// orders answers requests about signed orders, nil for none.
	orders atomic.Pointer[http.HandlerFunc]
}

// startSolver serves on a loopback address until the test ends.
func startSolver(t *testing.T, name string, environment network.Environment) *solver {
	t.Helper()
	s := &solver{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.endpoint = quoteprovider.Endpoint{
		Name: name, Kind: quoteprovider.OIF, URL: telemetry.Secret(server.URL), Environment: environment, Deployment: "test", Timeout: 2 * time.Second,
	}
	return s
}

func (s *solver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if orders := s.orders.Load(); orders != nil && strings.HasPrefix(r.URL.Path, "/api/v1/orders") {
		(*orders)(w, r)
		return
	}
	s.requests.Add(1)
	if answer := s.answer.Load(); answer != nil {
		(*answer)(w, r)
		return
	}
	type side map[string]string
	var request struct {
		Intent struct{ Inputs, Outputs []side }
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for missing, sides := range map[string][]side{"6": request.Intent.Inputs, "4": request.Intent.Outputs} {
		if sides[0]["amount"] == "" {
			sides[0]["amount"] = missing
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"quotes": []any{map[string]any{
		"quoteId": "q-1", "validUntil": time.Now().Add(time.Minute).Unix(), "eta": 30,
		"preview": map[string]any{"inputs": request.Intent.Inputs, "outputs": request.Intent.Outputs},
	}}})
}

func (s *solver) setOrders(answer http.HandlerFunc) { s.orders.Store(&answer) }

func (s *solver) setAnswer(answer http.HandlerFunc) { s.answer.Store(&answer) }

// answering is a handler with this status and body.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// quoting makes the solvers the service's providers of quotes.
func quoting(solvers ...*solver) func(*webtest.Settings) {
	return func(c *webtest.Settings) {
		var endpoints []quoteprovider.Endpoint
		for _, s := range solvers {
			endpoints = append(endpoints, s.endpoint)
		}
		c.Quotes.Providers = quoteprovider.New(endpoints, quoteprovider.Options{Registry: c.API.Metrics, Log: slog.New(slog.DiscardHandler)})
	}
}
