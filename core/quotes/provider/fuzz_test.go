package provider_test

import (
	"net/http"
	"testing"

	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/quote"
)

// body is a provider that answers with one body.
type body string

func (b body) RoundTrip(*http.Request) (*http.Response, error) {
	return reply(http.StatusOK, string(b)), nil
}

func FuzzProvider_Ask_LIFI(f *testing.F) { fuzzAnswers(f, provider.LIFI) }

func FuzzProvider_Ask_OIF(f *testing.F) { fuzzAnswers(f, provider.OIF) }

// Whatever a provider answers: there is a failure or there are 1 to 20 offers, of positive amounts below 2^256, that hold for 15 s and no longer
// than the order.
func fuzzAnswers(f *testing.F, kind provider.Kind) {
	f.Helper()
	f.Add(answers(kind, honest()), false)
	f.Add(answers(kind, honest(), honest(func(a *answer) { a.id, a.out.amount, a.eta = "null", `"1"`, "null" })), true)
	f.Add(answers(kind, honest(func(a *answer) { a.order = `{"openIntentTx": {"chain": "eip155:1", "to": "0x", "data": "0x7515fd56"}}` })), true)
	f.Add(answers(kind, honest(func(a *answer) { a.validUntil, a.exclusiveFor = "1", `["0x"]` })), false)
	f.Add(`{"quotes": null}`, false)
	f.Fuzz(func(t *testing.T, text string, exactOutput bool) {
		s, of := newSubject(t, at(kind, "https://quotes.example"), body(text)), quote.ExactInput
		if exactOutput {
			of = quote.ExactOutput
		}
		offers, failure := s.Ask(t.Context(), account, route(of), now)
		if (failure == nil) != (len(offers) > 0) || len(offers) > 20 {
			t.Errorf("%d offers and %v", len(offers), failure)
		}
		for _, o := range offers {
			if o.Amount.Sign() <= 0 || o.Amount.BitLen() > 256 || o.ValidUntil.Before(now.Add(15e9)) || o.ValidUntil.After(deadline) || o.Duration < 0 {
				t.Errorf("%+v", o)
			}
		}
	})
}
