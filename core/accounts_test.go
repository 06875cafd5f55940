package main_test

import (
	"testing"
	"time"

	"intents.internal/core/account"
	"intents.internal/core/postgres/pgtest"
)

func TestAccounts(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	for _, email := range []string{"ann@example.com", "bob@example.com"} {
		a, err := account.New("", email, "hash", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := store.InsertAccount(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	const states = `SELECT string_agg(concat_ws(' ', split_part(email, '@', 1), CASE WHEN disabled_at IS NOT NULL THEN 'disabled' END,
		CASE WHEN deleted_at IS NOT NULL THEN 'deleted' END), ', ' ORDER BY email) FROM accounts`
	nobody := func(email string) result {
		return result{1, "", `core: no account has the e-mail address "` + email + "\"\n"}
	}
	for _, c := range []struct {
		verb, email string
		want        result
		states      string
	}{
		{"disable", "ann@example.com", result{0, "disabled the account of ann@example.com\n", ""}, "ann disabled, bob"},
		{"enable", "ANN@example.com", result{0, "enabled the account of ann@example.com\n", ""}, "ann, bob"},
		{"delete", "bob@example.com", result{0, "deleted the account of bob@example.com\n", ""}, "ann, bob deleted"},
		{"enable", "bob@example.com", nobody("bob@example.com"), "ann, bob deleted"},
		{"disable", "nobody@example.com", nobody("nobody@example.com"), "ann, bob deleted"},
	} {
		if got := core(t, "", on(url), "accounts", c.verb, c.email); got != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.verb, c.email, got, c.want)
		}
		if got := lookUp[string](t, store, states); got != c.states {
			t.Errorf("after %s %s: %s, want %s", c.verb, c.email, got, c.states)
		}
	}
}
