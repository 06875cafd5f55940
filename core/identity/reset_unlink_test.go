package identity_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
)

// A link to a new password shows the other ways into its account, and the reset ends them where that is asked for: also those that the
// account has got since the page was opened. It ends none of an account that the reset leaves to its holder.
func TestResetPassword_UnlinkAccounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		unlink, unproven bool
		listed, left     int
	}{
		"they stay unless it is asked for":     {listed: 1, left: 2},
		"all end":                              {unlink: true, listed: 1},
		"an account that loses its address":    {unlink: true, unproven: true, left: 2},
		"the same, where nobody asks for them": {unproven: true, left: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := newMailing(t)
			in := core.signUpUnverified(t, identity.Client{}, "ann@example.com")
			if !c.unproven {
				pgtest.Exec(t, core.Store, `UPDATE accounts SET email_verified_at = now()`)
			}
			first, second := newWallet(t), newWallet(t)
			is(t, "a wallet", first.link(t, core.Service, in, ""), nil)
			token := core.request(t, "ann@example.com")
			listed, err := core.IdentitiesToReset(t.Context(), token)
			if err != nil || len(listed) != c.listed || c.listed > 0 && listed[0].Identity != first.identity(t) {
				t.Errorf("listed %+v, %v", listed, err)
			}
			if none, err := core.IdentitiesToReset(t.Context(), account.NewLinkToken()); len(none) > 0 || err != nil {
				t.Errorf("a guess lists %+v, %v", none, err)
			}
			is(t, "another wallet", second.link(t, core.Service, in, ""), nil)
			reset, err := core.ResetPassword(t.Context(), identity.Client{IP: "203.0.113.7"}, identity.ResetRequest{
				Token: token, NewPassword: newPassword, UnlinkAccounts: c.unlink,
			})
			if err != nil || reset.Fresh != c.unproven {
				t.Fatalf("%+v, %v", reset, err)
			}
			left, err := core.Identities(t.Context(), in.Account.ID)
			if err != nil || len(left) != c.left {
				t.Errorf("left %+v, %v", left, err)
			}
			entered := first.signIn(t, core.Service)
			if own := entered.Account.ID == in.Account.ID; own != (c.left > 0) {
				t.Errorf("the wallet enters the account: %v", own)
			}
			var want []string
			for _, w := range []wallet{first, second} {
				if c.left == 0 {
					want = append(want, w.identity(t).String()+"; with the reset of the password")
				}
			}
			got := pgtest.LookUp[string](t, core.Store, `SELECT coalesce(string_agg(detail, '|'), '') FROM audit_log WHERE account_id = $1 AND action = 'identity_unlinked'`, in.Account.ID)
			logged := strings.FieldsFunc(got, func(r rune) bool { return r == '|' })
			slices.Sort(want)
			slices.Sort(logged)
			if diff := cmp.Diff(want, logged); diff != "" && len(want)+len(logged) > 0 {
				t.Errorf("logged (-want +got):\n%s", diff)
			}
		})
	}
}

// A reset that fails ends no way to sign in.
func TestResetPassword_UnlinkAccounts_UsedLink(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	in := core.signUp(t, identity.Client{}, "ann@example.com")
	token := core.request(t, "ann@example.com")
	r := identity.ResetRequest{Token: token, NewPassword: newPassword, UnlinkAccounts: true}
	if _, err := core.ResetPassword(t.Context(), identity.Client{IP: "203.0.113.7"}, r); err != nil {
		t.Fatal(err)
	}
	again, err := core.SignIn(t.Context(), identity.Client{IP: "203.0.113.7"}, "ann@example.com", newPassword)
	if err != nil {
		t.Fatal(err)
	}
	is(t, "a wallet", newWallet(t).link(t, core.Service, again, ""), nil)
	if _, err := core.ResetPassword(t.Context(), identity.Client{IP: "203.0.113.7"}, r); !errors.Is(err, identity.ErrResetToken) {
		t.Errorf("the link again: %v", err)
	}
	if left, err := core.Identities(t.Context(), in.Account.ID); err != nil || len(left) != 1 {
		t.Errorf("left %+v, %v", left, err)
	}
}
