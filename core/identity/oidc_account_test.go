package identity_test

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
)

func TestFinishOIDC_Accounts(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	taken, err := account.New("Bob", "bob@example.com", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	taken.EmailVerifiedAt = taken.CreatedAt
	entry, err := account.NewAuditEntry(taken.ID, account.Actor{}, account.SignedUp, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Store.InsertAccount(t.Context(), taken, entry); err != nil {
		t.Fatal(err)
	}
	const nobodys = "@oidc.invalid"
	for name, c := range map[string]struct {
		claims, userInfo map[string]any
		email            string // of the account, or how it ends
		err              error
	}{
		"verified":              {claims: map[string]any{"email": "Verified@Example.com"}, email: "verified@example.com"},
		"verified, as a string": {claims: map[string]any{"email": "string@example.com", "email_verified": "true"}, email: "string@example.com"},
		"not verified":          {claims: map[string]any{"email_verified": false}, email: nobodys},
		"not said to be":        {claims: map[string]any{"email_verified": nil}, email: nobodys},
		"taken":                 {claims: map[string]any{"email": "bob@example.com"}, err: account.ErrEmailTaken},
		"taken, not verified":   {claims: map[string]any{"email": "bob@example.com", "email_verified": false}, email: nobodys},
		"a wallet's":            {claims: map[string]any{"email": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266@eip155.invalid"}, email: nobodys},
		"no address":            {claims: map[string]any{"email": "not an address"}, email: nobodys},
		"none":                  {claims: map[string]any{"email": nil}, email: nobodys},
		"from user info": {
			claims: map[string]any{"email": nil, "email_verified": nil}, userInfo: map[string]any{"email": "info@example.com", "email_verified": true},
			email: "info@example.com",
		},
		"from user info, not verified": {
			claims: map[string]any{"email": nil}, userInfo: map[string]any{"email": "unsure@example.com"}, email: nobodys,
		},
		"user info of somebody else": {
			claims: map[string]any{"email": nil}, userInfo: map[string]any{"sub": "bob", "email": "carol@example.com", "email_verified": true},
			err: identity.ErrOIDC,
		},
	} {
		i.mu.Lock()
		i.userInfo = map[string]any{"sub": name}
		maps.Copy(i.userInfo, c.userInfo)
		i.mu.Unlock()
		b := begin(t, s)
		c.claims["sub"] = name
		in, err := s.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, i.grant(b, c.claims))
		if !errors.Is(err, c.err) || err == nil && !strings.HasSuffix(in.Account.Email, c.email) {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
	}

	shut := newServiceOn(t, s.Store, func(c *identity.Config) { c.SignUpOpen = false }, i.config)
	for subject, want := range map[string]error{"verified": nil, "somebody new": identity.ErrSignUpClosed} {
		b := begin(t, shut)
		if _, err := shut.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, i.grant(b, map[string]any{"sub": subject})); !errors.Is(err, want) {
			t.Errorf("%s where sign-up is closed: %v", subject, err)
		}
	}
	if err := s.Store.DisableAccount(t.Context(), "verified@example.com", account.Actor{Operator: true}, time.Now()); err != nil {
		t.Fatal(err)
	}
	b := begin(t, s)
	if _, err := s.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, i.grant(b, map[string]any{"sub": "verified", "email": "new@example.com"})); !errors.Is(err, identity.ErrAccountDisabled) {
		t.Errorf("a disabled account: %v", err)
	}
}

// However many browsers of one new person come back at once, the person gets one account, and all are signed in.
func TestFinishOIDC_Concurrent(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	var done sync.WaitGroup
	for range 8 {
		b := begin(t, s)
		code := i.grant(b, nil)
		done.Go(func() {
			if _, err := s.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, code); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if accounts := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM accounts`); accounts != 1 {
		t.Errorf("%d accounts", accounts)
	}
}
