package identity_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
)

func TestSignInWithEthereum_Accounts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	w := newWallet(t)
	signIn := func(s *identity.Service) error {
		message := w.message(nonce(t, s, identity.Client{}))
		_, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message))
		return err
	}
	shut := newServiceOn(t, s.Store, func(c *identity.Config) { c.SignUpOpen = false })
	if err := signIn(shut); !errors.Is(err, identity.ErrSignUpClosed) {
		t.Errorf("a new wallet where sign-up is closed: %v", err)
	}
	if err := signIn(s); err != nil {
		t.Errorf("a new wallet: %v", err)
	}
	if err := signIn(shut); err != nil {
		t.Errorf("a known wallet where sign-up is closed: %v", err)
	}
	email, operator := strings.ToLower(w.address)+"@eip155.invalid", account.Actor{Operator: true}
	if err := s.Store.DisableAccount(t.Context(), email, operator, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := signIn(s); !errors.Is(err, identity.ErrAccountDisabled) {
		t.Errorf("a disabled account: %v", err)
	}
	if err := s.Store.DeleteAccount(t.Context(), email, operator, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := signIn(s); err != nil {
		t.Errorf("a wallet whose account was deleted: %v", err)
	}
	if accounts := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM accounts WHERE deleted_at IS NULL`); accounts != 1 {
		t.Errorf("%d accounts", accounts)
	}
}

func TestSignInWithEthereum_Limited(t *testing.T) {
	t.Parallel()
	limited := func(err error) bool { _, is := errors.AsType[*identity.LimitedError](err); return is }
	s := newService(t, func(c *identity.Config) { c.Limits.SignInPerIP = 2 })
	client := identity.Client{IP: "203.0.113.7"}
	w := newWallet(t)
	message := w.message(nonce(t, s, client))
	if _, err := s.SignInWithEthereum(t.Context(), client, message, w.sign(t, message)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WalletNonce(t.Context(), client); !limited(err) {
		t.Errorf("a nonce too many: %v", err)
	}
	if _, err := s.SignInWithEthereum(t.Context(), client, message, ""); !limited(err) {
		t.Errorf("a message too many: %v", err)
	}
	if _, err := s.WalletNonce(t.Context(), identity.Client{IP: "203.0.113.8"}); err != nil {
		t.Errorf("somebody else: %v", err)
	}

	s = newService(t, func(c *identity.Config) { c.Limits.SignUpPerIP = 1 })
	for i := range 2 {
		w := newWallet(t)
		message := w.message(nonce(t, s, client))
		if _, err := s.SignInWithEthereum(t.Context(), client, message, w.sign(t, message)); limited(err) != (i == 1) {
			t.Errorf("new account %d: %v", i+1, err)
		}
	}
}

// Browsers leave the scheme's own port out, whatever the setting says.
func TestSignInWithEthereum_OverTLS(t *testing.T) {
	t.Parallel()
	for publicURL, domains := range map[string][]string{
		"https://intents.example":     {"intents.example", "https://intents.example"},
		"https://Intents.example:443": {"intents.example", "https://intents.example", "Intents.example:443"},
	} {
		s := newService(t, func(c *identity.Config) { c.PublicURL = publicURL })
		w := newWallet(t)
		for _, domain := range domains {
			message := w.message(nonce(t, s, identity.Client{}), "intents.example wants", domain+" wants", "http://", "https://")
			if _, err := s.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message)); err != nil {
				t.Errorf("%s: %v of\n%s", publicURL, err, message)
			}
		}
	}
}
