package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/quote"
)

// A provider's reserve makes its quotes worse for the user, rounded against it, and is compared with nothing: the provider is asked for what the
// client asks, and its own order is judged by its own amounts.
func TestProvider_Ask_Reserve(t *testing.T) {
	t.Parallel()
	maximum := "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	for name, c := range map[string]struct {
		kind   quote.Kind
		bps    int64
		amount string
		want   outcome
	}{
		"none":                        {quote.ExactInput, 0, "999000", outcome{Offers: []string{"999000"}}},
		"of the output":               {quote.ExactInput, 500, "999000", outcome{Offers: []string{"949050"}}},
		"of the output, rounded down": {quote.ExactInput, 1, "999001", outcome{Offers: []string{"998901"}}}, // 998901.0999
		"nothing is left":             {quote.ExactInput, 1, "1", outcome{Code: quote.NoQuote}},
		"on the input":                {quote.ExactOutput, 500, "1000000", outcome{Offers: []string{"1050000"}}},
		"on the input, rounded up":    {quote.ExactOutput, 1, "1000001", outcome{Offers: []string{"1000102"}}}, // 1000101.0001
		"over 2^256":                  {quote.ExactOutput, 1, maximum, outcome{Code: quote.NoQuote}},
	} {
		for _, kind := range []provider.Kind{provider.LIFI, provider.OIF} {
			body := answers(kind, honest(func(a *answer) {
				if c.kind == quote.ExactOutput {
					a.in.amount = fmt.Sprintf("%q", c.amount)
				} else {
					a.out.amount = fmt.Sprintf("%q", c.amount)
				}
			}))
			e := at(kind, serve(t, respond(body)))
			e.ReserveBps = c.bps
			if diff := cmp.Diff(c.want, newSubject(t, e, nil).outcome(t, route(c.kind))); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", kind, name, diff)
			}
		}
	}
	e := at(provider.OIF, serve(t, respond(answers(provider.OIF, honest(func(a *answer) { a.order = signed()["permit2"] })))))
	e.ReserveBps = 100
	if diff := cmp.Diff(outcome{Offers: []string{"989010"}}, newSubject(t, e, nil).outcome(t, route(quote.ExactInput))); diff != "" {
		t.Errorf("with the provider's own order (-want +got):\n%s", diff)
	}
}

func TestReadFile_Reserve(t *testing.T) {
	t.Parallel()
	const entry = `[{"name": "a", "kind": "oif", "url": "https://a.example", "environment": "test", "deployment": "d", "reserveBps": %s}]`
	for text, want := range map[string]string{
		"0": "", "500": "", "501": "a: reserveBps must be from 0 to 500", "-1": "a: reserveBps must be from 0 to 500", "1.5": "[0]: must be an object", `"1"`: "[0]: must be an object",
	} {
		_, err := readText(t, fmt.Sprintf(entry, text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
