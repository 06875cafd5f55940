package registry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

func definition(chainNumber uint64, n int) registry.Token {
	return registry.Token{
		ID:     caip.AccountID{Chain: caip.EIP155Chain(chainNumber), Address: fmt.Sprintf("0x%040d", n)},
		Symbol: fmt.Sprintf("T%d", n), Decimals: 18,
	}
}

func TestImportTokens(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	importChains(t, store, entry(1, nil))
	var tokens []registry.Token
	for n := range 1203 { // three statements' worth
		tokens = append(tokens, definition(1, n))
	}
	load := func(step string, want registry.Imported) {
		t.Helper()
		var told []int
		imported, err := store.Registry.ImportTokens(t.Context(), tokens, pgtest.Now(), func(done int) { told = append(told, done) })
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, imported); diff != "" {
			t.Errorf("%s: counts differ (-want +got):\n%s", step, diff)
		}
		if diff := cmp.Diff([]int{500, 1000, 1203}, told); diff != "" {
			t.Errorf("%s: progress differs (-want +got):\n%s", step, diff)
		}
	}
	load("all new", registry.Imported{Added: 1203})
	load("the same again", registry.Imported{})
	tokens[0].Symbol, tokens[700].Decimals, tokens[1202].Metadata = "NEW", 6, "https://example.com/t.svg"
	load("three changed", registry.Imported{Updated: 3})
	load("those again", registry.Imported{})
	tokens[1202].Metadata = ""
	tokens[1] = definition(1, 5000)
	load("one changed, one new", registry.Imported{Added: 1, Updated: 1})
	tokens[2].Origin = registry.Origin{Source: "https://example.com/list.json", License: "GPL-3.0-or-later"}
	tokens[3].Source = "https://example.com/list.json"
	load("two of a source", registry.Imported{Updated: 2})
	load("those of a source again", registry.Imported{})
	tokens[4].ERC3009 = &registry.ERC3009{Name: "USD Coin", Version: "2", Form: registry.VRSForm}
	tokens[5].EIP2612 = &registry.EIP712Domain{Name: "USD Coin", Version: "2"}
	tokens[6].FeeOnTransfer = true
	load("three that can be signed for or take a fee", registry.Imported{Updated: 3})
	tokens[7].Name = "Seven"
	load("one that is named", registry.Imported{Updated: 1})
	load("those three again", registry.Imported{})
	tokens[4].ERC3009 = &registry.ERC3009{Name: "USD Coin", Version: "2", Form: registry.BytesForm}
	tokens[5].EIP2612, tokens[6].FeeOnTransfer = nil, false
	load("another form, no permit, no fee", registry.Imported{Updated: 3})

	snapshot, err := store.Registry.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(snapshot.Tokens) != 1204 {
		t.Errorf("%d tokens: one that a list leaves out must stay", len(snapshot.Tokens))
	}
	for _, want := range tokens {
		got, _ := snapshot.Token(want.ID)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("token differs (-want +got):\n%s", diff)
		}
	}
}

func TestTokenSources(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	importChains(t, store, entry(1, nil))
	var tokens []registry.Token
	for n, origin := range []registry.Origin{{}, {Source: "b"}, {Source: "a", License: "MIT"}, {Source: "b"}, {Source: "b", License: "MIT"}, {Source: "b"}} {
		tokens = append(tokens, definition(1, n+1))
		tokens[n].Origin = origin
	}
	if _, err := store.Registry.ImportTokens(t.Context(), tokens, pgtest.Now(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	got, err := store.Registry.TokenSources(t.Context())
	want := []registry.TokenSource{
		{Origin: registry.Origin{Source: "b"}, Tokens: 3},
		{Tokens: 1},
		{Origin: registry.Origin{Source: "a", License: "MIT"}, Tokens: 1},
		{Origin: registry.Origin{Source: "b", License: "MIT"}, Tokens: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Readers of the registry wait for no import and see none of it before it is whole.
func TestImportTokens_ConcurrentReaders(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	before := pgtest.LoadRegistry(t, store)
	var tokens []registry.Token
	for n := range 1203 {
		tokens = append(tokens, definition(1, n+1))
	}
	_, err := store.Registry.ImportTokens(t.Context(), tokens, pgtest.Now(), func(done int) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		during, err := store.Registry.Registry(ctx)
		if err != nil {
			t.Errorf("after %d rows: %v", done, err)
		} else if diff := cmp.Diff(before, during, snapshots); diff != "" {
			t.Errorf("after %d rows the registry differs (-want +got):\n%s", done, diff)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := store.Registry.Registry(t.Context())
	if err != nil || len(after.Tokens) != len(before.Tokens)+1203 || after.Version <= before.Version {
		t.Errorf("%v, %d tokens", err, len(after.Tokens))
	}
}
