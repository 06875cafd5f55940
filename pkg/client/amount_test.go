package client_test

import (
	"testing"

	"intents.internal/pkg/client"
)

func TestAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		decimal  string
		decimals int
		amount   client.Amount
		back     string
	}{
		{"1", 6, "1000000", "1"},
		{"12.5", 6, "12500000", "12.5"},
		{"0.000001", 6, "1", "0.000001"},
		{"0.05", 18, "50000000000000000", "0.05"},
		{"0", 6, "0", "0"},
		{"007.10", 2, "710", "7.1"},
		{"5", 0, "5", "5"},
	} {
		got, err := client.ParseAmount(c.decimal, c.decimals)
		if err != nil || got != c.amount || got.Decimal(c.decimals) != c.back {
			t.Errorf("%s with %d decimals: %s, %s, %v", c.decimal, c.decimals, got, got.Decimal(c.decimals), err)
		}
		if n, err := got.Int(); err != nil || n.String() != string(c.amount) {
			t.Errorf("%s: %s, %v", got, n, err)
		}
	}
	for _, decimal := range []string{"", ".", "1.", ".5", "-1", "+1", "1e6", "1,5", "1.0000001", "0x1", " 1", "1.2.3"} {
		if got, err := client.ParseAmount(decimal, 6); err == nil {
			t.Errorf("%q is %s", decimal, got)
		}
	}
	for _, amount := range []client.Amount{"", "-1", "+1", "1.5", "0x1", "1e3", " 1", "1_0"} {
		if n, err := amount.Int(); err == nil {
			t.Errorf("%q is %s", amount, n)
		}
	}
}
