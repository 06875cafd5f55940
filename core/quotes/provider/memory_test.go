package provider_test

import (
	"runtime"
	"strings"
	"testing"

	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/quote"
)

// Small elements need no more memory than the body.
//
//nolint:paralleltest // it counts what the process allocates
func TestProvider_SmallElements(t *testing.T) {
	const size = 1000 << 10
	list := func(element string) string {
		return "[" + strings.Repeat(element+",", size/(len(element)+1)) + element + "]"
	}
	for name, body := range map[string]string{
		"quotes": `{"quotes":` + list("0") + `}`,
		"inputs": `{"quotes":[{"preview":{"inputs":` + list("{}") + `}}]}`,
	} {
		for _, kind := range []provider.Kind{provider.LIFI, provider.OIF} {
			s, r := newSubject(t, at(kind, serve(t, respond(body))), nil), route(quote.ExactInput)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = s.Ask(t.Context(), account, r, now)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 12*size {
				t.Errorf("%s %s: %d MB are allocated for a body of 1 MB", kind, name, got>>20)
			}
		}
	}
}
