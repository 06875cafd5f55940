package account_test

import (
	"errors"
	"strings"
	"testing"

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
