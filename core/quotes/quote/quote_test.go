package quote_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/quotes/quote"
	"intents.internal/core/transfer"
)

func TestSort(t *testing.T) {
	t.Parallel()
	one := func(name string, in, out int64, duration time.Duration) quote.Quote {
		return quote.Quote{
			Provider: name, Source: transfer.Leg{Amount: big.NewInt(in)}, Destination: transfer.Leg{Amount: big.NewInt(out)}, Duration: duration,
		}
	}
	quotes := []quote.Quote{
		one("unknown duration", 10, 90, 0), one("least output", 1, 80, time.Second), one("b", 10, 90, time.Minute), one("slow", 10, 90, time.Hour),
		one("a", 10, 90, time.Minute), one("most output", 10, 100, 0), one("less input", 9, 90, 0),
	}
	quote.Sort(quotes)
	var got []string
	for _, q := range quotes {
		got = append(got, q.Provider)
	}
	if diff := cmp.Diff([]string{"most output", "less input", "a", "b", "slow", "unknown duration", "least output"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFailureCode_Answered(t *testing.T) {
	t.Parallel()
	answered := map[quote.FailureCode]bool{quote.ProviderRefused: true, quote.ProviderInvalid: true, quote.ExactOutputUnsupported: true, quote.NoQuote: true}
	for _, code := range quote.FailureCodes {
		if code.Answered() != answered[code] {
			t.Errorf("%s: %t", code, code.Answered())
		}
	}
}
