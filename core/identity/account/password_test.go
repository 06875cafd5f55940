package account_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/alexedwards/argon2id"

	"intents.internal/core/identity/account"
)

// A new password must be of a length that can be hashed and not among those that are guessed first.
func TestCheckPassword(t *testing.T) {
	t.Parallel()
	const length, common = "must have 8 to 128 characters", "is one of the most common passwords, which are guessed first; choose another"
	for password, want := range map[string]string{
		"": length, "1234567": length, strings.Repeat("x", 129): length, "password": common, "Password": common, "12345678": common, "PASSWORD1": common,
		"football": common, "passw0rd": common, "password123": common, "Password1!": common, "11111111": common, "qwertyuiop": common, "iloveyou": common, "correct horse battery": "", strings.Repeat("é", 128): "", "p@ss word": "",
	} {
		message := ""
		if invalid, ok := errors.AsType[*account.InvalidError](account.CheckPassword("newPassword", password)); ok && invalid.Field == "newPassword" {
			message = invalid.Message
		}
		if message != want {
			t.Errorf("%q: %q, want %q", password, message, want)
		}
	}
}

// The same characters are one password, however they are typed: composed, apart, or as the wide forms of an East Asian keyboard. A hash
// of the raw form, as versions before made it, works with that form.
func TestPasswords_NFKC(t *testing.T) {
	t.Parallel()
	const composed, apart, wide = "correct caf\u00e9 battery", "correct cafe\u0301 battery", "\uff43orrect caf\u00e9 battery"
	passwords := account.NewPasswords(argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32})
	raw, err := argon2id.CreateHash(apart, &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32})
	if err != nil {
		t.Fatal(err)
	}
	matches := func(password, hash string) bool {
		same, err := passwords.Matches(t.Context(), password, hash)
		if err != nil {
			t.Fatal(err)
		}
		return same
	}
	for _, chosen := range []string{composed, apart, wide} {
		hash, err := passwords.Hash(t.Context(), chosen)
		if err != nil {
			t.Fatal(err)
		}
		for _, typed := range []string{composed, apart, wide} {
			if !matches(typed, hash) {
				t.Errorf("%q does not match the hash of %q", typed, chosen)
			}
		}
		if matches("correct cafe battery", hash) {
			t.Error("another password matches")
		}
	}
	if !matches(apart, raw) || matches("correct cafe battery", raw) || matches(apart, "") {
		t.Error("the hash of a raw form does not work as before")
	}
}
