package provider_test

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
)

// calldata opens the order that the route's quote makes of our own, with changes.
func calldata(t *testing.T, change func(*transfer.Intent)) []byte {
	t.Helper()
	r := route(quote.ExactInput)
	intent := &transfer.Intent{
		ID: account, Type: transfer.Bridge, Status: transfer.Created, Source: r.Source, Destination: r.Destination, Settlement: r.Settlement,
		Deadline: now.Add(3600e9),
	}
	intent.Destination.Amount = big.NewInt(999_000)
	change(intent)
	tx, err := intent.Tx(transfer.Moment{Now: now, BlockTime: 0})
	if err != nil {
		t.Fatal(err)
	}
	return tx.Data
}

// inContext puts a context into the order's output, whose own is empty at the end of the calldata.
func inContext(data []byte, context ...byte) []byte {
	data[len(data)-1] = byte(len(context))
	padded := make([]byte, (len(context)+31)/32*32)
	copy(padded, context)
	return append(data, padded...)
}

// A provider's transaction must open the order that we would make of its amounts.
func TestProvider_Ask_Order(t *testing.T) {
	t.Parallel()
	taken := outcome{Offers: []string{"999000"}}
	contract := outcome{Code: quote.ProviderInvalid, Dropped: dropped("contract")}
	amount := outcome{Code: quote.ProviderInvalid, Dropped: dropped("amount")}
	exclusive := outcome{Code: quote.NoQuote, Dropped: dropped("exclusive")}
	own := func(*transfer.Intent) {}
	settler := route(quote.ExactInput).Settlement.InputSettler
	for name, c := range map[string]struct {
		change func(*transfer.Intent)
		edit   func([]byte) []byte
		chain  uint64
		to     string
		bytes  bool // the framework's list of numbers, where LI.FI has a text
		want   outcome
	}{
		"ours":                 {want: taken},
		"ours, as bytes":       {bytes: true, want: taken},
		"an empty limit order": {edit: func(b []byte) []byte { return inContext(b, 0) }, want: taken},
		"a better order": {change: func(i *transfer.Intent) {
			i.Source.Amount, i.Destination.Amount = big.NewInt(999_999), big.NewInt(999_001)
		}, want: taken},
		"other user":                 {change: func(i *transfer.Intent) { i.Source.Account.Address = stranger }, want: contract},
		"other recipient":            {change: func(i *transfer.Intent) { i.Destination.Account.Address = stranger }, want: contract},
		"other recipient, as bytes":  {change: func(i *transfer.Intent) { i.Destination.Account.Address = stranger }, bytes: true, want: contract},
		"other input token":          {change: func(i *transfer.Intent) { i.Source.Token.Address = stranger }, want: contract},
		"native input":               {change: func(i *transfer.Intent) { i.Source.Token.Address = native }, want: contract},
		"other output token":         {change: func(i *transfer.Intent) { i.Destination.Token.Address = stranger }, want: contract},
		"other origin":               {change: func(i *transfer.Intent) { i.Source.Account.Chain.Reference = "10" }, want: contract},
		"other destination":          {change: func(i *transfer.Intent) { i.Destination.Account.Chain.Reference = "10" }, want: contract},
		"other input oracle":         {change: func(i *transfer.Intent) { i.Settlement.InputOracle = stranger }, want: contract},
		"other output oracle":        {change: func(i *transfer.Intent) { i.Settlement.OutputOracle = stranger }, want: contract},
		"other output settler":       {change: func(i *transfer.Intent) { i.Settlement.OutputSettler = stranger }, want: contract},
		"other input settler":        {to: stranger, want: contract},
		"sent on another chain":      {chain: 8453, want: contract},
		"takes more":                 {change: func(i *transfer.Intent) { i.Source.Amount = big.NewInt(1_000_001) }, want: amount},
		"gives less":                 {change: func(i *transfer.Intent) { i.Destination.Amount = big.NewInt(998_999) }, want: amount},
		"exclusive":                  {edit: func(b []byte) []byte { return inContext(b, append([]byte{0xe0}, make([]byte, 36)...)...) }, want: exclusive},
		"exclusive auction":          {edit: func(b []byte) []byte { return inContext(b, append([]byte{0xe1}, make([]byte, 72)...)...) }, want: exclusive},
		"another function":           {edit: func(b []byte) []byte { b[0]++; return b }, want: contract},
		"only a selector":            {edit: func(b []byte) []byte { return b[:4] }, want: contract},
		"cut short":                  {edit: func(b []byte) []byte { return b[:len(b)-1] }, want: contract},
		"nothing":                    {edit: func([]byte) []byte { return nil }, want: contract},
		"a list of 2^255 outputs":    {edit: func(b []byte) []byte { b[4+12*32] = 0x80; return b }, want: contract},
		"a list of a million":        {edit: func(b []byte) []byte { b[4+9*32+29] = 0x10; return b }, want: contract},
		"an offset beyond the data":  {edit: func(b []byte) []byte { b[4+8*32+20] = 1; return b }, want: contract},
		"a high bit in an address":   {edit: func(b []byte) []byte { b[4+19*32] = 1; return b }, want: contract},
		"two chains' number in bits": {edit: func(b []byte) []byte { b[4+16*32] = 1; return b }, want: contract},
	} {
		for _, kind := range []provider.Kind{provider.LIFI, provider.OIF} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				change, chain, to := own, uint64(1), settler
				if c.change != nil {
					change = c.change
				}
				if c.chain != 0 {
					chain = c.chain
				}
				if c.to != "" {
					to = c.to
				}
				data := calldata(t, change)
				if c.edit != nil {
					data = c.edit(data)
				}
				order := fmt.Sprintf(`{"type": "oif-user-open-v0", "openIntentTx": {"chain": "eip155:%d", "to": %q, "data": "0x%s", "gasRequired": "250000"},
					"checks": {"allowances": [{"spender": %q}]}}`, chain, to, hex.EncodeToString(data), stranger)
				if kind == provider.OIF {
					encoded := `"0x` + hex.EncodeToString(data) + `"`
					if c.bytes {
						encoded = strings.ReplaceAll(fmt.Sprintf("%d", data), " ", ",") // [117,21,253,86,…]
					}
					order = fmt.Sprintf(`{"type": "oif-user-open-v0", "openIntentTx": {"to": %q, "data": %s, "gasRequired": "250000"}}`,
						providertest.Interoperable(chain, to), encoded)
				}
				s := newSubject(t, at(kind, serve(t, respond(answers(kind, honest(func(a *answer) { a.order = order }))))), nil)
				if diff := cmp.Diff(c.want, s.outcome(t, route(quote.ExactInput))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A quote that shows no order is taken by its amounts; one whose order cannot be read is not.
func TestProvider_Ask_OtherOrders(t *testing.T) {
	t.Parallel()
	opening := func(data string) string {
		return fmt.Sprintf(`{"type": "oif-user-open-v0", "openIntentTx": {"to": %q, "data": %s}}`, providertest.Interoperable(1, stranger), data)
	}
	taken := outcome{Offers: []string{"999000"}}
	malformed := outcome{Code: quote.ProviderInvalid, Dropped: dropped("malformed")}
	contract := outcome{Code: quote.ProviderInvalid, Dropped: dropped("contract")}
	for order, want := range map[string]outcome{
		"null": taken, "{}": taken, `{"type": null}`: taken, `"order"`: malformed, `{"type": 7}`: malformed,
		opening("[1, 2]"): contract, opening("[]"): contract, opening("null"): contract, opening(`""`): contract,
		opening("[1, 256]"): malformed, opening("[-1]"): malformed, opening("[1.5]"): malformed, opening(`["1"]`): malformed,
		opening("[65536]"): malformed, opening("7"): malformed, opening(`{"0": 1}`): malformed,
	} {
		s := newSubject(t, at(provider.OIF, serve(t, respond(answers(provider.OIF, honest(func(a *answer) { a.order = order }))))), nil)
		if diff := cmp.Diff(want, s.outcome(t, route(quote.ExactInput))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", order, diff)
		}
	}
}

// A provider of either kind can name the one solver that may fill a quote's order.
func TestProvider_Ask_ExclusiveFor(t *testing.T) {
	t.Parallel()
	for value, free := range map[string]bool{
		"null": true, `""`: true, "[]": true, "[ ]": true, "{}": true, "false": true, `"` + stranger + `"`: false, `["` + stranger + `"]`: false, "true": false,
	} {
		for _, kind := range []provider.Kind{provider.LIFI, provider.OIF} {
			body := answers(kind, honest(func(a *answer) { a.exclusiveFor = value }))
			got := newSubject(t, at(kind, serve(t, respond(body))), nil).outcome(t, route(quote.ExactInput))
			if want := (outcome{Code: quote.NoQuote, Dropped: dropped("exclusive")}); free != (len(got.Offers) == 1) || !free && !cmp.Equal(want, got) {
				t.Errorf("%s, %s: %+v", kind, value, got)
			}
		}
	}
}
