package identity_test

import (
	"fmt"
	"testing"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

// BenchmarkInsertSignUp is how far the time of a sign-up could tell whether its address is taken.
func BenchmarkInsertSignUp(b *testing.B) {
	store := pgtest.New(b)
	n := 0
	for name, email := range map[string]func() string{
		"new address":   func() string { n++; return fmt.Sprintf("new%d@example.com", n) },
		"taken address": func() string { return "taken@example.com" },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a, err := account.New("", email(), "hash", pgtest.Now())
				if err != nil {
					b.Fatal(err)
				}
				if err := store.Identities.InsertSignUp(b.Context(), a, ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
