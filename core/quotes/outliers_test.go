package quotes_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity/access"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/wire"
)

// offered asks once, for 1000 units, and returns what is offered.
func (s *service) offered(t *testing.T, r wire.QuoteRequest) (all []string) {
	t.Helper()
	r.Source.Amount = "1000"
	answer, err := s.Ask(t.Context(), access.OfOperator, s.by, r)
	for _, q := range answer.Quotes {
		all = append(all, fmt.Sprint(q.Provider, " ", q.Destination.Amount))
	}
	if len(all) == 0 && err == nil {
		t.Error("neither a quote nor an error")
	}
	return all
}

// An offer that is far better than others, or far from the prices of the last minutes, is none: it would come first, and nobody fills it.
func TestService_Ask_Outliers(t *testing.T) {
	t.Parallel()
	const absurd = 1_000_000_000_000
	from := func(amounts ...int) http.HandlerFunc { return offer(time.Minute, 1000, amounts...) }
	for name, c := range map[string]struct {
		solvers map[string]http.HandlerFunc
		asset   bool // both tokens are one asset
		want    []string
	}{
		"one of two":                {map[string]http.HandlerFunc{"a": from(990), "b": from(absurd)}, false, []string{"a 990"}},
		"one of three":              {map[string]http.HandlerFunc{"a": from(990), "b": from(absurd), "c": from(980)}, false, []string{"a 990", "c 980"}},
		"a low one of three":        {map[string]http.HandlerFunc{"a": from(990), "b": from(1), "c": from(980)}, false, []string{"a 990", "c 980", "b 1"}},
		"one offer of a provider":   {map[string]http.HandlerFunc{"a": from(990), "b": from(absurd, 985)}, false, []string{"a 990", "b 985"}},
		"the only one":              {map[string]http.HandlerFunc{"a": from(absurd)}, false, []string{fmt.Sprint("a ", absurd)}},
		"the only one of one asset": {map[string]http.HandlerFunc{"a": from(absurd)}, true, nil},
		"another price":             {map[string]http.HandlerFunc{"a": from(990), "b": from(9900)}, false, []string{"b 9900", "a 990"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, c.solvers)
			if !c.asset {
				s.otherSymbol(t)
			}
			if diff := cmp.Diff(c.want, s.offered(t, request(t))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// otherSymbol has the two tokens of request be different assets.
func (s *service) otherSymbol(t *testing.T) {
	t.Helper()
	pgtest.Exec(t, s.store, `UPDATE tokens SET symbol = 'OTHER' WHERE chain_id = 'eip155:84532'`)
	pgtest.Must(t, s.Registry.Refresh(t.Context()))
}

// A provider that alone answers with another price than all have just agreed upon has no quote; what one of several answered alone is not what
// they agreed upon.
func TestService_Ask_RecentPrices(t *testing.T) {
	t.Parallel()
	answers := map[string]int{}
	var s *service
	solver := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if answers[name] == 0 {
				fail(400, "")(w, r)
				return
			}
			offer(time.Minute, 1000, answers[name])(w, r)
		}
	}
	s = start(t, map[string]http.HandlerFunc{"a": solver("a"), "b": solver("b")})
	s.otherSymbol(t)
	for n, step := range []struct {
		a, b int
		want []string
	}{
		{0, 1_000_000, []string{"b 1000000"}}, // nothing to compare with
		{990, 0, []string{"a 990"}},
		{990, 980, []string{"a 990", "b 980"}},
		{0, 1_000_000, nil},
		{0, 9, nil},
		{990, 9, []string{"a 990"}},
		{0, 2000, []string{"b 2000"}},
	} {
		answers["a"], answers["b"] = step.a, step.b
		got := s.offered(t, request(t))
		slices.SortFunc(got, func(a, b string) int { return len(a) - len(b) })
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", n, diff)
		}
	}
}
