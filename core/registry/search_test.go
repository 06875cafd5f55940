package registry_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

func TestSnapshot_Search(t *testing.T) {
	t.Parallel()
	one, ten := caip.EIP155Chain(1), caip.EIP155Chain(10)
	token := func(on caip.ChainID, n int, symbol, name string) registry.Token {
		return registry.Token{ID: caip.AccountID{Chain: on, Address: fmt.Sprintf("0x%040d", n)}, Symbol: symbol, Name: name}
	}
	bridged, coin, wrapped := token(one, 1, "axlUSDC", ""), token(one, 2, "USDC", "USD Coin"), token(one, 3, "USDC.e", "USD Coin (Bridged)")
	native := registry.Token{ID: caip.AccountID{Chain: one, Address: registry.NativeAddress}, Symbol: "ETH", Name: "Ether"}
	there, tether := token(ten, 2, "USDC", "USD Coin"), token(ten, 5, "USDT", "Tether USD")
	snapshot := registry.NewSnapshot(1, []registry.Chain{{ID: one}, {ID: ten}}, []registry.Token{tether, there, wrapped, coin, bridged, native})
	for _, c := range []struct {
		text  string
		on    caip.ChainID
		limit int
		want  []registry.Token
	}{
		{"usdc", caip.ChainID{}, 9, []registry.Token{coin, there, wrapped, bridged}},
		{"USDC", one, 9, []registry.Token{coin, wrapped, bridged}},
		{"USDC", one, 2, []registry.Token{coin, wrapped}},
		{"usd", caip.ChainID{}, 9, []registry.Token{coin, wrapped, there, tether, bridged}},
		{"tether usd", caip.ChainID{}, 9, []registry.Token{tether}},
		{"(bridged", caip.ChainID{}, 9, []registry.Token{wrapped}},
		{"dai", caip.ChainID{}, 9, nil},
		{"usdc", caip.EIP155Chain(404), 9, nil},
		{coin.ID.Address, caip.ChainID{}, 9, []registry.Token{coin, there}},
		{coin.ID.Address, ten, 9, []registry.Token{there}},
		{coin.ID.Address[:41], caip.ChainID{}, 9, nil},
		{coin.ID.String(), caip.ChainID{}, 9, []registry.Token{coin}},
		{coin.ID.String(), ten, 9, nil},
		{"0XEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE", caip.ChainID{}, 9, []registry.Token{native}},
	} {
		if diff := cmp.Diff(c.want, snapshot.Search(c.text, c.on, c.limit)); diff != "" {
			t.Errorf("%q on %s, %d at most (-want +got):\n%s", c.text, c.on, c.limit, diff)
		}
	}
}
