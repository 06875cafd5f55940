package registry_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

func TestSnapshot(t *testing.T) {
	t.Parallel()
	one, ten, two := caip.EIP155Chain(1), caip.EIP155Chain(10), caip.EIP155Chain(2)
	on := func(id caip.ChainID, symbol, address string) registry.Token {
		return registry.Token{ID: caip.AccountID{Chain: id, Address: address}, Symbol: symbol}
	}
	snapshot := registry.NewSnapshot(7,
		[]registry.Chain{{ID: ten, Name: "ten"}, {ID: one, Name: "one"}, {ID: two, Name: "two"}},
		[]registry.Token{on(ten, "A", "0x1"), on(one, "B", "0x2"), on(one, "B", "0x1"), on(one, "A", "0x3")},
	)
	wantTokens := []registry.Token{on(one, "A", "0x3"), on(one, "B", "0x1"), on(one, "B", "0x2"), on(ten, "A", "0x1")}
	if diff := cmp.Diff(wantTokens, snapshot.Tokens); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]registry.Chain{{ID: one, Name: "one"}, {ID: two, Name: "two"}, {ID: ten, Name: "ten"}}, snapshot.Chains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
	for id, want := range map[caip.ChainID][]registry.Token{one: wantTokens[:3], ten: wantTokens[3:], two: nil} {
		if diff := cmp.Diff(want, snapshot.TokensOn(id)); diff != "" {
			t.Errorf("tokens on %s (-want +got):\n%s", id, diff)
		}
	}
	if c, ok := snapshot.Chain(two); c.Name != "two" || !ok {
		t.Errorf("Chain(2) = %v, %t", c, ok)
	}
	if _, ok := snapshot.Token(caip.AccountID{Chain: two, Address: "0x1"}); ok {
		t.Error("a token of another chain was found")
	}
}

func TestSnapshot_WithWatched(t *testing.T) {
	t.Parallel()
	one, two := caip.EIP155Chain(1), caip.EIP155Chain(2)
	none := registry.NewSnapshot(7, []registry.Chain{{ID: one}, {ID: two}}, nil)
	first := none.WithWatched([]caip.ChainID{one}, false)
	if none.Watched(one) || !first.Watched(one) || first.Watched(two) || first.Version != 7 {
		t.Errorf("got %t, %t, %t in version %d", none.Watched(one), first.Watched(one), first.Watched(two), first.Version)
	}
	if first.Watched(one, two) || !first.WithWatched([]caip.ChainID{one, two}, false).Watched(one, two) {
		t.Error("two chains are watched if both are")
	}
	if _, ok := first.Chain(two); !ok || first.WithWatched([]caip.ChainID{one}, false) != first || none.WithWatched(nil, false) != none {
		t.Error("the same chains make another snapshot, or another registry")
	}
	strict := first.WithWatched([]caip.ChainID{one}, true)
	if !first.TakesIntents(two) || !strict.TakesIntents(one) || strict.TakesIntents(two) {
		t.Error("chains that are not watched take intents unless that is required, and watched chains always do")
	}
}
