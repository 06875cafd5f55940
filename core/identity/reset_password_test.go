package identity_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/identity/mail"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// mailing is a service whose mails arrive in the channel, security notices in one of their own.
type mailing struct {
	*identity.Service
	mails, notices chan embedded.Mail
}

func newMailing(t *testing.T, change ...func(*identity.Config)) *mailing {
	t.Helper()
	store, m := pgtest.New(t), &mailing{mails: make(chan embedded.Mail, 1000), notices: make(chan embedded.Mail, 1000)}
	server, err := embedded.StartSMTP(t.Context(), embedded.SMTPConfig{Received: func(got embedded.Mail) error {
		if bytes.Contains(got.Data, []byte("Subject: Security notice")) {
			m.notices <- got
		} else {
			m.mails <- got
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	client, err := mail.NewSMTP(mail.SMTPConfig{URL: "smtp://" + server.Address, From: "no-reply@example.com", Domain: "intents.example"})
	if err != nil {
		t.Fatal(err)
	}
	outbox := mail.NewOutbox(store, client, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	m.Service = newServiceOn(t, store, append(change, withPasswords(t), func(c *identity.Config) { c.MailQueued = outbox.Wake })...)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { outbox.Run(ctx, m.ComposeMail) })
	t.Cleanup(func() { stop(); running.Wait() })
	return m
}

// signUp makes an account as one from before mail was configured, signed in, and verifies its address.
func (m *mailing) signUp(t *testing.T, v identity.Client, email string) *identity.SignedIn {
	t.Helper()
	in := m.signUpUnverified(t, v, email)
	pgtest.Exec(t, m.Store, `UPDATE accounts SET email_verified_at = now() WHERE email = $1`, email)
	return in
}

// signUpUnverified makes an account as one from before mail was configured, signed in.
func (m *mailing) signUpUnverified(t *testing.T, v identity.Client, email string) *identity.SignedIn {
	t.Helper()
	withoutMail := *m.Service
	withoutMail.MailQueued = nil
	return signUp(t, &withoutMail, v, email)
}

// settle waits until the outbox is empty, and returns to whom mails went.
func (m *mailing) settle(t *testing.T) (to []string) {
	t.Helper()
	asynctest.Eventually(t, "all mails are sent", func() bool { return pgtest.LookUp[int](t, m.Store, `SELECT count(*) FROM mails`) == 0 })
	for len(m.mails) > 0 {
		to = append(to, (<-m.mails).To...)
	}
	return to
}

// token is that of the link in the next mail.
func (m *mailing) token(t *testing.T) string {
	t.Helper()
	link, err := url.Parse((<-m.mails).Link())
	if err != nil {
		t.Fatal(err)
	}
	return link.Query().Get("token")
}

// request asks for a link and returns its token.
func (m *mailing) request(t *testing.T, email string) string {
	t.Helper()
	if err := m.RequestPasswordReset(t.Context(), identity.Client{IP: "203.0.113.7"}, email, ""); err != nil {
		t.Fatal(err)
	}
	return m.token(t)
}

func TestResetPassword(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	home := identity.Client{IP: "203.0.113.7", UserAgent: "Home/1.0"}
	in := core.signUp(t, home, "ann@example.com")
	other := core.signUp(t, home, "bob@example.com")
	if err := core.RequestPasswordReset(t.Context(), home, "ANN@example.com", ""); err != nil {
		t.Fatal(err)
	}
	got := <-core.mails
	link := got.Link()
	token, found := strings.CutPrefix(link, "http://intents.example/console/reset-password?token=")
	if !found || len(token) != 43 || !cmp.Equal(got.To, []string{"ann@example.com"}) {
		t.Fatalf("%s has the link %s", got.To, link)
	}
	if n := pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM reset_tokens AS r WHERE strpos(r::text, $1) > 0`, token); n != 0 {
		t.Error("the token is stored")
	}
	if reset, err := core.ResetPassword(t.Context(), home, identity.ResetRequest{Token: token, NewPassword: newPassword}); err != nil || reset.Fresh {
		t.Fatal(reset, err)
	}
	if _, _, err := core.Session(t.Context(), in.Token); !errors.Is(err, identity.ErrSignedOut) {
		t.Errorf("a session outlives the reset: %v", err)
	}
	if _, _, err := core.Session(t.Context(), other.Token); err != nil {
		t.Errorf("another account's session: %v", err)
	}
	if _, err := core.SignIn(t.Context(), home, "ann@example.com", password); !errors.Is(err, identity.ErrCredentials) {
		t.Errorf("the old password: %v", err)
	}
	if _, err := core.SignIn(t.Context(), home, "ann@example.com", newPassword); err != nil {
		t.Errorf("the new password: %v", err)
	}
	want := []string{
		"signed_up|||203.0.113.7 Home/1.0", "signed_in||with a password|203.0.113.7 Home/1.0",
		"password_reset||by a link; all sessions ended|203.0.113.7 Home/1.0", "signed_in||with a password|203.0.113.7 Home/1.0",
	}
	if diff := cmp.Diff(want, auditLog(t, core.Service, in.Account.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each token is refused, and nothing is changed by it.
func TestResetPassword_Tokens(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	in := core.signUp(t, identity.Client{}, "ann@example.com")
	reset := func(token string) error {
		_, err := core.ResetPassword(t.Context(), identity.Client{IP: "203.0.113.7"}, identity.ResetRequest{Token: token, NewPassword: newPassword})
		return err
	}
	for what, token := range map[string]func() string{
		"none":       func() string { return "" },
		"a guess":    account.NewLinkToken,
		"NUL":        func() string { return "\x00" },
		"a megabyte": func() string { return strings.Repeat("x", 1<<20) },
		"a session":  func() string { return in.Token },
		"the hash": func() string {
			hash := account.HashToken(core.request(t, "ann@example.com"))
			return string(hash[:])
		},
		"a part":       func() string { return core.request(t, "ann@example.com")[:42] },
		"another case": func() string { return strings.ToLower(core.request(t, "ann@example.com")) + "A" },
		"one that has expired": func() string {
			token := core.request(t, "ann@example.com")
			pgtest.Exec(t, core.Store, `UPDATE reset_tokens SET expires_at = now() - interval '1 second'`)
			return token
		},
		"one of an account that is disabled": func() string {
			core.signUp(t, identity.Client{}, "disabled@example.com")
			token := core.request(t, "disabled@example.com")
			pgtest.Exec(t, core.Store, `UPDATE accounts SET disabled_at = now() WHERE email LIKE 'disabled%'`)
			return token
		},
		"one of an account that has ended": func() string {
			core.signUp(t, identity.Client{}, "ended@example.com")
			token := core.request(t, "ended@example.com")
			pgtest.Exec(t, core.Store, `UPDATE accounts SET deleted_at = now() WHERE email LIKE 'ended%'`)
			return token
		},
	} {
		if err := reset(token()); !errors.Is(err, identity.ErrResetToken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := core.Session(t.Context(), in.Token); err != nil {
		t.Errorf("a refused token has ended a session: %v", err)
	}

	first, second := core.request(t, "ann@example.com"), core.request(t, "ann@example.com")
	if _, err := core.ResetPassword(t.Context(), identity.Client{IP: "203.0.113.7"}, identity.ResetRequest{Token: first, NewPassword: "short"}); err == nil || errors.Is(err, identity.ErrResetToken) {
		t.Errorf("a short password: %v", err)
	}
	if err := reset(first); err != nil {
		t.Errorf("after a short password: %v", err)
	}
	for what, token := range map[string]string{"used": first, "the account's other": second} {
		if err := reset(token); !errors.Is(err, identity.ErrResetToken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	third := core.request(t, "ann@example.com")
	if err := core.Store.SetPassword(t.Context(), "ann@example.com", "hash", account.Actor{Operator: true}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := reset(third); !errors.Is(err, identity.ErrResetToken) {
		t.Errorf("after another change of the password: %v", err)
	}
}

// Of any number of concurrent uses of a token one succeeds.
func TestResetPassword_Once(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	in := core.signUp(t, identity.Client{}, "ann@example.com")
	token := account.HashToken(core.request(t, "ann@example.com"))
	mustSucceedOnce(t, account.ErrNotFound, func(n int) error {
		entry, err := account.NewAuditEntry(in.Account.ID, account.Actor{}, account.PasswordReset, core.Store.Now())
		_, reset := core.Store.ResetPassword(t.Context(), token, fmt.Sprintf("hash %d", n), false, entry)
		return errors.Join(err, reset)
	})
}

// mustSucceedOnce fails the test unless of eight concurrent uses one succeeds and the others return an error.
func mustSucceedOnce(t *testing.T, otherwise error, use func(n int) error) {
	t.Helper()
	var uses sync.WaitGroup
	errs := make(chan error, 8)
	for n := range cap(errs) {
		uses.Go(func() { errs <- use(n) })
	}
	uses.Wait()
	succeeded := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			succeeded++
		} else if !errors.Is(err, otherwise) {
			t.Error(err)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d uses succeeded", succeeded)
	}
}

// Tokens cannot be tried without end, and a wrong one costs no hash.
func TestResetPassword_Guesses(t *testing.T) {
	t.Parallel()
	core := newService(t, func(c *identity.Config) { c.Limits.SignInPerIP, c.Passwords = 3, &account.Passwords{} }) // it has no turn to give
	for n := range 4 {
		_, err := core.ResetPassword(t.Context(), identity.Client{IP: "203.0.113.7"}, identity.ResetRequest{Token: account.NewLinkToken(), NewPassword: newPassword})
		_, limited := errors.AsType[*identity.LimitedError](err)
		if limited != (n == 3) || n < 3 && !errors.Is(err, identity.ErrResetToken) {
			t.Errorf("guess %d: %v", n, err)
		}
	}
}
