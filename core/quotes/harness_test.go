package quotes_test

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
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
	var all []*providertest.Solver
	for name, handle := range solvers {
		name, deployment, other := strings.Cut(name, "@")
		one := providertest.Start(t, name, network.Test)
		one.SetAnswer(handle)
		if other {
			one.Endpoint.Deployment = deployment
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *providertest.Solver) int { return strings.Compare(a.Endpoint.Name, b.Endpoint.Name) })
	s.Service = quotes.New(quotes.Config{
		Store: s.store.Quotes, Registry: live, Providers: providertest.Providers(t, prometheus.NewRegistry(), all...),
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

// offer answers with quotes for request, one for each amount.
func offer(holds time.Duration, in int, out ...int) http.HandlerFunc {
	q := providertest.Quotes{Sends: strconv.Itoa(in), Holds: holds}
	for _, amount := range out {
		q.Gives = append(q.Gives, strconv.Itoa(amount))
	}
	return q.ServeHTTP
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
