package provider_test

import (
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/outbound"
	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/metricstest"
)

const (
	sender    = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"
	recipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	stranger  = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	usdc      = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
	baseUSDC  = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
	native    = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
)

var (
	now     = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	account = uuid.MustParse("0199a1b2-c3d4-7e5f-8a6b-0c1d2e3f4a01")
	// deadline is that of the order.
	deadline = now.Add(2 * time.Hour)
	lastUse  = now.Add(30 * time.Minute)
)

// route is a request for a bridge of one USDC from Ethereum to Base.
func route(kind quote.Kind) provider.Request {
	leg := func(number uint64, account, token string) transfer.Leg {
		id := caip.EIP155Chain(number)
		return transfer.Leg{Account: caip.AccountID{Chain: id, Address: account}, Token: caip.AccountID{Chain: id, Address: token}}
	}
	r := provider.Request{
		Kind: kind, Source: leg(1, sender, usdc), Destination: leg(8453, recipient, baseUSDC), MinValidUntil: now.Add(time.Minute), Deadline: deadline,
		LastUse: lastUse, MinValidity: 15 * time.Second,
		Settlement: transfer.Settlement{
			Scheme: registry.StandardOrder, Deployment: "lifi-v2", Expires: deadline.Add(48 * time.Hour),
			InputSettler: "0x00fC00edbe7C003b006f870068c548940000223e", OutputSettler: "0x75220B7600c300005038432a0000f308e0000068",
			InputOracle: "0x008C3800F3Ad9b3B662d002E90Cc00000000eE17", OutputOracle: "0x008C3800F3Ad9b3B662d002E90Cc00000000eE17",
		},
	}
	if kind == quote.ExactInput {
		r.Source.Amount = big.NewInt(1_000_000)
	} else {
		r.Destination.Amount = big.NewInt(999_000)
	}
	return r
}

// answer is a quote of a provider as its JSON has it; texts that are not addresses are JSON.
type answer struct {
	id, validUntil, eta string
	in, out             answerSide
	order, exclusiveFor string
	partialFill         string
}

type answerSide struct {
	chain          uint64
	account, token string
	amount         string
}

// honest is a quote for route that holds for a minute.
func honest(change ...func(*answer)) answer {
	a := answer{
		id: `"q-1"`, validUntil: fmt.Sprint(now.Add(time.Minute).Unix()), eta: "30", order: "null", exclusiveFor: "null", partialFill: "false",
		in: answerSide{1, sender, usdc, `"1000000"`}, out: answerSide{8453, recipient, baseUSDC, `"999000"`},
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

// json is the quote in a provider's dialect.
func (a answer) json(kind provider.Kind) string {
	if kind == provider.LIFI {
		side := func(who string, s answerSide) string {
			return fmt.Sprintf(`[{"chain": "eip155:%d", %q: %q, "asset": %q, "amount": %s}]`, s.chain, who, s.account, s.token, s.amount)
		}
		return fmt.Sprintf(`{"quoteId": %s, "provider": null, "validUntil": %s, "eta": %s, "preview": {"inputs": %s, "outputs": %s}, "order": %s,
			"partialFill": %s, "failureHandling": "refund-automatic", "metadata": {"exclusiveFor": %s}}`,
			a.id, a.validUntil, a.eta, side("user", a.in), side("receiver", a.out), a.order, a.partialFill, a.exclusiveFor)
	}
	side := func(who string, s answerSide) string {
		return fmt.Sprintf(`[{%q: %q, "asset": %q, "amount": %s}]`, who, providertest.Interoperable(s.chain, s.account), providertest.Interoperable(s.chain, s.token), s.amount)
	}
	return fmt.Sprintf(`{"quoteId": %s, "provider": "solver", "validUntil": %s, "eta": %s, "preview": {"inputs": %s, "outputs": %s}, "order": %s,
		"partialFill": %s, "failureHandling": "refund-automatic", "metadata": {"exclusiveFor": %s}}`,
		a.id, a.validUntil, a.eta, side("user", a.in), side("receiver", a.out), a.order, a.partialFill, a.exclusiveFor)
}

// answers is the body of an answer with these quotes.
func answers(kind provider.Kind, quotes ...answer) string {
	var texts []string
	for _, q := range quotes {
		texts = append(texts, q.json(kind))
	}
	return `{"quotes": [` + strings.Join(texts, ",") + `]}`
}

// respond answers each request with a body and status 200.
func respond(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

// serve serves on loopback.
func serve(t *testing.T, handle http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

// subject is a provider with its metrics and its log.
type subject struct {
	*provider.Provider
	registry *prometheus.Registry
	log      strings.Builder
}

// newSubject returns a provider named solver that may be called on 127.0.0.1.
func newSubject(t *testing.T, e provider.Endpoint, transport http.RoundTripper) *subject {
	t.Helper()
	e.Name, e.Environment, e.Deployment = "solver", network.Test, "lifi-v2"
	if e.Timeout == 0 {
		e.Timeout = time.Minute // the machine may be busy
	}
	s := &subject{registry: prometheus.NewRegistry()}
	providers := provider.New([]provider.Endpoint{e}, provider.Options{
		Networks: outbound.NewNetworks([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}), Registry: s.registry,
		Log: slog.New(slog.NewTextHandler(&s.log, nil)), Transport: transport,
	})
	t.Cleanup(providers.Close)
	s.Provider = providers.In(network.Test)[0]
	return s
}

// at is an endpoint of a kind.
func at(kind provider.Kind, url string) provider.Endpoint {
	return provider.Endpoint{Kind: kind, URL: telemetry.Secret(url)}
}

// counted are the counters of a name that are not 0, by their label besides the environment and the provider.
func (s *subject) counted(t *testing.T, name string) map[string]float64 {
	t.Helper()
	counts := map[string]float64{}
	for labels, value := range metricstest.Of(t, s.registry, name) {
		if value > 0 {
			label := strings.NewReplacer("test solver", "", "solver", "").Replace(labels)
			counts[strings.TrimSpace(label)] = value
		}
	}
	return counts
}

// closedURL is an address at which nobody listens any more.
func closedURL(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(nil)
	server.Close()
	return server.URL
}
