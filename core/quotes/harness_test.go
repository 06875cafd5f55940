package quotes_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/intents"
	"intents.internal/core/outbound"
	"intents.internal/core/pgtest"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/provider"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type service struct {
	*quotes.Service
	store *rooms.Rooms
	by    transfer.Caller
}

// start serves quotes of solvers that answer as these handlers do, each of a deployment, "test" if a name says none ("solver@other"). All are of
// the test environment.
func start(t *testing.T, solvers map[string]http.HandlerFunc) *service {
	t.Helper()
	s := &service{store: pgtest.New(t), by: transfer.Caller{AccountID: uuid.New(), KeyID: uuid.New(), Environment: network.Test}}
	pgtest.LoadRegistry(t, s.store)
	s.addDeployment(t)
	live, err := registry.NewLiveRegistry(t.Context(), s.store.Registry)
	pgtest.Must(t, err)
	var endpoints []provider.Endpoint
	for name, handle := range solvers {
		server := httptest.NewServer(handle)
		t.Cleanup(server.Close)
		name, deployment, other := strings.Cut(name, "@")
		if !other {
			deployment = "test"
		}
		endpoints = append(endpoints, provider.Endpoint{
			Name: name, Kind: provider.OIF, URL: telemetry.Secret(server.URL), Environment: network.Test, Deployment: deployment, Timeout: time.Minute,
		})
	}
	slices.SortFunc(endpoints, func(a, b provider.Endpoint) int { return strings.Compare(a.Name, b.Name) })
	providers := provider.New(endpoints, provider.Options{
		Networks: outbound.NewNetworks([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}), Registry: prometheus.NewRegistry(),
		Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(providers.Close)
	s.Service = quotes.New(quotes.Config{
		Store: s.store.Quotes, Registry: live, Providers: providers,
		Intents: intents.New(intents.Config{Store: s.store.Intents, Registry: live}),
	})
	return s
}

// addDeployment gives Sepolia and Base Sepolia a second deployment, "other".
func (s *service) addDeployment(t *testing.T) {
	t.Helper()
	list, err := registry.ReadChainList(bytes.NewReader(pgtest.ChainsJSON))
	pgtest.Must(t, err)
	for n, c := range list.Chains {
		if len(c.Settlements) > 0 {
			other := c.Settlements[0]
			other.Deployment, other.Oracle = "other", "0x0000000000000000000000000000000000000777"
			list.Chains[n].Settlements = []registry.Settlement{c.Settlements[0], other}
		}
	}
	_, err = s.store.Registry.ImportChains(t.Context(), list.Chains, time.Now(), func(int) {})
	pgtest.Must(t, err)
}

// request is BridgeBody without the amount at the destination.
func request(t *testing.T) wire.QuoteRequest {
	t.Helper()
	r := pgtest.ParseRequest(t, pgtest.BridgeBody)
	r.Destination.Amount = ""
	return wire.QuoteRequest{Source: r.Source, Destination: r.Destination}
}

// offer answers with quotes for request, one for each amount, that hold for a time from when the client asked, which wants a minute.
func offer(holds time.Duration, in int, out ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Intent struct{ MinValidUntil int64 } }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		until := asked.Intent.MinValidUntil + int64((holds - time.Minute).Seconds())
		var quotes []string
		for n, amount := range out {
			quotes = append(quotes, fmt.Sprintf(`{"quoteId": "q-%d", "validUntil": %d, "eta": 30.5, "preview": {
				"inputs": [{"user": %q, "asset": %q, "amount": "%d"}], "outputs": [{"receiver": %q, "asset": %q, "amount": "%d"}]}}`,
				n, until, interoperable(11155111, pgtest.Alice), tokenOf(pgtest.SepoliaUSDC, 11155111), in,
				interoperable(84532, pgtest.Bob), tokenOf(pgtest.BaseUSDC, 84532), amount))
		}
		_, _ = fmt.Fprintf(w, `{"quotes": [%s]}`, strings.Join(quotes, ","))
	}
}

func tokenOf(id string, number uint64) string {
	return interoperable(number, id[strings.LastIndex(id, ":")+1:])
}

// interoperable is the address by EIP-7930.
func interoperable(number uint64, address string) string {
	reference := new(big.Int).SetUint64(number).Bytes()
	return "0x00010000" + hex.EncodeToString([]byte{byte(len(reference))}) + hex.EncodeToString(reference) + "14" + strings.TrimPrefix(address, "0x")
}

// fail answers with a status, and Retry-After if it is not empty.
func fail(status int, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
	}
}
