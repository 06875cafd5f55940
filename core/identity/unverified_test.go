package identity_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/network"
)

// holders are accounts with the address squat@example.com, by what keeps them from losing it.
var holders = map[string]struct {
	prepare func(t *testing.T, m *mailing, in *identity.SignedIn)
	loses   bool
}{
	"nothing": {func(*testing.T, *mailing, *identity.SignedIn) {}, true},
	"a test key": {func(t *testing.T, m *mailing, in *identity.SignedIn) {
		t.Helper()
		makeKey(t, m, in, network.Test)
	}, true},
	"a live key": {func(t *testing.T, m *mailing, in *identity.SignedIn) {
		t.Helper()
		makeKey(t, m, in, network.Live)
	}, false},
	"a live key that is deleted": {func(t *testing.T, m *mailing, in *identity.SignedIn) {
		t.Helper()
		if err := m.DeleteKey(t.Context(), identity.Client{}, in.Account.ID, makeKey(t, m, in, network.Live).ID); err != nil {
			t.Fatal(err)
		}
	}, false},
	"a verified address": {func(t *testing.T, m *mailing, _ *identity.SignedIn) {
		t.Helper()
		if err := m.Store.VerifyEmail(t.Context(), squatted, account.Actor{Operator: true}, m.Store.Now()); err != nil {
			t.Fatal(err)
		}
	}, false},
	"an operator who disabled it": {func(t *testing.T, m *mailing, _ *identity.SignedIn) {
		t.Helper()
		pgtest.Exec(t, m.Store, `UPDATE accounts SET disabled_at = now()`)
	}, false},
}

const squatted = "squat@example.com"

func makeKey(t *testing.T, m *mailing, in *identity.SignedIn, environment network.Environment) *account.Key {
	t.Helper()
	key, _, err := m.CreateKey(t.Context(), identity.Client{}, own(in), account.KeyRequest{Name: "key", Environment: environment})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// lost checks that an account has lost its address and nothing else, and that its holder is told.
func lost(t *testing.T, m *mailing, in *identity.SignedIn) {
	t.Helper()
	_, owner, err := m.Session(t.Context(), in.Token)
	if err != nil || owner.ID != in.Account.ID || owner.HasEmail() || owner.EmailVerified() {
		t.Fatalf("the session of the account: %+v, %v", owner, err)
	}
	if again, err := m.SignIn(t.Context(), identity.Client{}, owner.Email, password); err != nil || again.Account.ID != in.Account.ID {
		t.Errorf("the password with the address that it got: %v", err)
	}
	if log := strings.Join(auditLog(t, m.Service, owner.ID), "\n"); !strings.Contains(log, "email_lost||its owner proved") || !strings.Contains(log, "sign in as "+owner.Email) {
		t.Errorf("the audit log: %s", log)
	}
}

// An OpenID Connect sign-in with a verified address takes it from an account that holds nothing by it.
func TestUnverified_OIDC(t *testing.T) {
	t.Parallel()
	for name, c := range holders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t)
			m := newMailing(t, i.config)
			in := m.signUpUnverified(t, identity.Client{}, squatted)
			c.prepare(t, m, in)
			b := begin(t, m.Service)
			got, err := m.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, i.grant(b, map[string]any{"email": squatted}))
			if !c.loses {
				if !errors.Is(err, account.ErrEmailTaken) {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if err != nil || got.Account.ID == in.Account.ID || got.Account.Email != squatted || !got.Account.EmailVerified() {
				t.Fatalf("%+v, %v", got, err)
			}
			lost(t, m, in)
		})
	}
}

// A mailed link to a new password leads to an account that a holder who never proved the address cannot enter.
func TestUnverified_Reset(t *testing.T) {
	t.Parallel()
	for name, c := range holders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			in := m.signUpUnverified(t, identity.Client{}, squatted)
			c.prepare(t, m, in)
			if err := m.RequestPasswordReset(t.Context(), identity.Client{IP: "203.0.113.7"}, squatted, ""); err != nil {
				t.Fatal(err)
			}
			if name == "an operator who disabled it" {
				if to := m.settle(t); len(to) > 0 {
					t.Errorf("mails went to %q", to)
				}
				return
			}
			reset, err := m.ResetPassword(t.Context(), identity.Client{IP: "203.0.113.7"}, identity.ResetRequest{Token: m.token(t), NewPassword: newPassword})
			if err != nil || reset.Fresh != c.loses {
				t.Fatalf("a new account: %+v, %v", reset, err)
			}
			got, err := m.SignIn(t.Context(), identity.Client{}, squatted, newPassword)
			if err != nil || (got.Account.ID != in.Account.ID) != c.loses || !got.Account.EmailVerified() {
				t.Fatalf("%+v, %v", got, err)
			}
			if c.loses {
				lost(t, m, in)
				return
			}
			if _, _, err := m.Session(t.Context(), in.Token); !errors.Is(err, identity.ErrSignedOut) {
				t.Errorf("a session outlives the reset: %v", err)
			}
		})
	}
}

// An operator's link resets the account itself and proves no address, as it was not mailed.
func TestUnverified_OperatorsLink(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	in := m.signUpUnverified(t, identity.Client{}, squatted)
	token, entry := account.NewLinkToken(), account.AuditEntry{AccountID: in.Account.ID, Action: account.ResetLinkMade}
	entry.ID, entry.OccurredAt, entry.Actor = in.Session.ID, m.Store.Now(), account.Actor{Operator: true}
	if err := m.Store.InsertResetToken(t.Context(), in.Account, account.HashToken(token), m.Store.Now().Add(account.LinkLifetime), &entry); err != nil {
		t.Fatal(err)
	}
	if reset, err := m.ResetPassword(t.Context(), identity.Client{}, identity.ResetRequest{Token: token, NewPassword: newPassword}); err != nil || reset.Fresh {
		t.Fatalf("a new account: %+v, %v", reset, err)
	}
	if got, err := m.SignIn(t.Context(), identity.Client{}, squatted, newPassword); err != nil || got.Account.ID != in.Account.ID || got.Account.EmailVerified() {
		t.Errorf("%+v, %v", got, err)
	}
}

// However many prove an address at once, it has one account in the end.
func TestUnverified_Concurrent(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	m := newMailing(t, i.config)
	in := m.signUpUnverified(t, identity.Client{}, squatted)
	token := m.request(t, squatted)
	var done sync.WaitGroup
	for range 4 {
		b := begin(t, m.Service)
		code := i.grant(b, map[string]any{"email": squatted})
		done.Go(func() {
			if _, err := m.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, code); err != nil && !errors.Is(err, account.ErrEmailTaken) {
				t.Error(err)
			}
		})
		done.Go(func() {
			if _, err := m.ResetPassword(t.Context(), identity.Client{}, identity.ResetRequest{Token: token, NewPassword: newPassword}); err != nil && !errors.Is(err, identity.ErrResetToken) {
				t.Error(err)
			}
		})
	}
	done.Wait()
	lost(t, m, in)
	want := "2 1" // accounts, and those with the address
	if got := pgtest.LookUp[string](t, m.Store, `SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE email = $1)) FROM accounts`, squatted); cmp.Diff(want, got) != "" {
		t.Errorf("accounts, and those with the address: %s, want %s", got, want)
	}
}
