package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/quotes/quote"
)

// padded is an address in 32 bytes.
func padded(address string) string {
	return "0x000000000000000000000000" + strings.TrimPrefix(address, "0x")
}

// signed are the orders that a signature opens, as the framework's solver offers them (oif-solver 926e39a), of our own contracts.
func signed() map[string]string {
	s := route(quote.ExactInput).Settlement
	return map[string]string{
		"permit2": fmt.Sprintf(`{"type": "oif-escrow-v0", "payload": {"signatureType": "eip712", "primaryType": "PermitBatchWitnessTransferFrom", "types": {},
			"domain": {"name": "Permit2", "chainId": 1, "verifyingContract": "0x000000000022D473030F116dDEE9F6B43aC78BA3"},
			"message": {"permitted": [{"token": %q, "amount": "1000000"}], "spender": %q, "nonce": "1795608000000", "deadline": "1795608300",
				"witness": {"user": %q, "expires": 1795608600, "inputOracle": %q, "outputs": [{"oracle": %q, "settler": %q, "chainId": 8453,
					"token": %q, "amount": "999000", "recipient": %q, "callbackData": "0x", "context": "0x"}]}}}}`,
			usdc, s.InputSettler, sender, s.InputOracle, padded(s.OutputOracle), padded(s.OutputSettler), padded(baseUSDC), padded(recipient)),
		"erc3009": fmt.Sprintf(`{"type": "oif-3009-v0", "payload": {"signatureType": "eip712", "primaryType": "ReceiveWithAuthorization", "types": {},
			"domain": {"name": "USD Coin", "version": "2", "chainId": 1, "verifyingContract": %q},
			"message": {"from": %q, "to": %q, "value": "1000000", "validAfter": 0, "validBefore": 1795608300, "nonce": "0x01"}},
			"metadata": {"domain_separator": "0x", "user": %q, "nonce": 7, "originChainId": 1, "expires": 1795608600, "fillDeadline": 1795608300, "inputOracle": %q,
				"inputs": [], "outputs": [{"chainId": 8453, "asset": %q, "amount": "999000", "receiver": %q, "oracle": %q, "settler": %q}]}}`,
			usdc, sender, s.InputSettler, providertest.Interoperable(1, sender), s.InputOracle, providertest.Interoperable(8453, baseUSDC), providertest.Interoperable(8453, recipient),
			s.OutputOracle, s.OutputSettler),
	}
}

// An order that a signature opens must be the one that we would make, as one that a transaction opens: orders for other contracts are filled by
// nobody.
func TestProvider_Ask_SignedOrder(t *testing.T) {
	t.Parallel()
	taken := outcome{Offers: []string{"999000"}}
	contract := outcome{Code: quote.ProviderInvalid, Dropped: dropped("contract")}
	amount := outcome{Code: quote.ProviderInvalid, Dropped: dropped("amount")}
	exclusive := outcome{Code: quote.NoQuote, Dropped: dropped("exclusive")}
	s := route(quote.ExactInput).Settlement
	swap := func(old, other string) func(string) string {
		return func(order string) string {
			digits := func(a string) string { return strings.TrimPrefix(a, "0x") }
			return strings.ReplaceAll(strings.ReplaceAll(order, digits(old), digits(other)), strings.ToLower(digits(old)), digits(other))
		}
	}
	replace := func(old, other string) func(string) string {
		return func(order string) string { return strings.ReplaceAll(order, old, other) }
	}
	for name, c := range map[string]struct {
		edit func(string) string
		of   string // the kind, empty for both
		want outcome
	}{
		"ours":                      {func(o string) string { return o }, "", taken},
		"addresses in lower case":   {swap(s.InputSettler, strings.ToLower(s.InputSettler)), "", taken},
		"numbers as texts":          {replace(`"chainId": 1,`, `"chainId": "1",`), "", taken},
		"texts as numbers":          {replace(`"999000"`, `999000`), "", taken},
		"gives more":                {replace(`"999000"`, `"999001"`), "", taken},
		"gives less":                {replace(`"999000"`, `"998999"`), "", amount},
		"takes more":                {replace(`"1000000"`, `"1000001"`), "", amount},
		"takes what is not said":    {replace(`"1000000"`, `null`), "", contract},
		"a fraction":                {replace(`"999000"`, `999000.5`), "", contract},
		"other user":                {swap(sender, stranger), "", contract},
		"other recipient":           {swap(recipient, stranger), "", contract},
		"other input token":         {swap(usdc, stranger), "", contract},
		"other output token":        {swap(baseUSDC, stranger), "", contract},
		"other input settler":       {swap(s.InputSettler, stranger), "", contract},
		"other output settler":      {swap(s.OutputSettler, stranger), "", contract},
		"other oracles":             {swap(s.InputOracle, stranger), "", contract},
		"other input oracle":        {replace(`"inputOracle": "`+s.InputOracle, `"inputOracle": "`+stranger), "", contract},
		"other output oracle":       {replace(`"oracle": "`, `"oracle": "`+padded(stranger)+`", "was": "`), "", contract},
		"other origin":              {replace(`"chainId": 1,`, `"chainId": 10,`), "", contract},
		"other origin, in metadata": {replace(`"originChainId": 1,`, `"originChainId": 10,`), "erc3009", contract},
		"other destination":         {replace(`"chainId": 8453`, `"chainId": 10`), "", contract},
		"a high bit in an address":  {replace(padded(recipient), "0x01"+padded(recipient)[4:]), "permit2", contract},
		"no user":                   {replace(`"user": "`+sender+`", `, ""), "permit2", contract},
		"no outputs":                {replace(`"outputs": `, `"inputs2": `), "", contract},
		"no metadata":               {replace(`"metadata": `, `"other": `), "erc3009", contract},
		"no payload":                {replace(`"payload": `, `"other": `), "", contract},
		"two outputs":               {replace(`"outputs": [`, `"outputs": [{}, `), "", contract},
		"many outputs":              {replace(`"outputs": [`, `"outputs": [`+strings.Repeat("{}, ", 10)), "", contract},
		"exclusive":                 {replace(`"context": "0x"`, `"context": "0xe0`+strings.Repeat("00", 36)+`"`), "permit2", exclusive},
		"of another type":           {replace(`"type": "oif-`, `"type": "oif-resource-lock-`), "", contract},
		"a transaction without one": {func(string) string { return `{"type": "oif-user-open-v0"}` }, "", contract},
	} {
		for of, order := range signed() {
			if c.of != "" && c.of != of {
				continue
			}
			for _, kind := range []provider.Kind{provider.LIFI, provider.OIF} {
				t.Run(fmt.Sprintf("%s %s %s", kind, of, name), func(t *testing.T) {
					t.Parallel()
					body := answers(kind, honest(func(a *answer) { a.order = c.edit(order) }))
					if diff := cmp.Diff(c.want, newSubject(t, at(kind, serve(t, respond(body))), nil).outcome(t, route(quote.ExactInput))); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// A solver whose orders can be claimed for longer than ours may leave ours alone: it is logged once.
func TestProvider_Ask_ClaimPeriod(t *testing.T) {
	t.Parallel()
	for expires, want := range map[string]int{"1795608600": 0, "1795781100": 0, "1795781101": 1} { // 48 h after the deadline, and a second more
		order := strings.ReplaceAll(signed()["permit2"], "1795608600", expires)
		s := newSubject(t, at(provider.OIF, serve(t, respond(answers(provider.OIF, honest(func(a *answer) { a.order = order }))))), nil)
		for range 2 {
			s.outcome(t, route(quote.ExactInput))
		}
		if got := strings.Count(s.log.String(), "raise claimPeriod"); got != want {
			t.Errorf("expires %s: %d warnings: %s", expires, got, s.log.String())
		}
	}
}
