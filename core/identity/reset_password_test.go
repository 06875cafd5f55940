package identity_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// mailing is a service whose mails arrive in the channel, security notices in one of their own.
type mailing struct {
	*identity.Service
	rooms          *rooms.Rooms
	mails, notices chan embedded.Mail
}

func newMailing(t *testing.T, change ...func(*identity.Config)) *mailing {
	t.Helper()
	rooms := pgtest.New(t)
	m := &mailing{rooms: rooms, mails: make(chan embedded.Mail, 1000), notices: make(chan embedded.Mail, 1000)}
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
	client := must(mail.NewSMTP(mail.SMTPConfig{URL: "smtp://" + server.Address, From: "no-reply@example.com", Domain: "intents.example"}))(t)
	outbox := mail.NewOutbox(rooms.Mail, client, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	m.Service = newServiceOn(t, rooms, append(change, withPasswords(t), func(c *identity.Config) { c.MailQueued = outbox.Wake })...)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { outbox.Run(ctx, m.composers()) })
	t.Cleanup(func() { stop(); running.Wait() })
	return m
}

// composers are those of the service and of webhooks.
func (m *mailing) composers() mail.Composers {
	composers := m.Composers()
	composers[mail.KindWebhookDisabled] = m.LimitMails(webhooks.NewService(m.rooms.Webhooks, nil, m.Service).ComposeDisabled)
	return composers
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
	return signUp(t, withoutMail(m.Service), v, email)
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
	link := must(url.Parse((<-m.mails).Link()))(t)
	return link.Query().Get("token")
}

// request asks for a link and returns its token.
func (m *mailing) request(t *testing.T, email string) string {
	t.Helper()
	ok(t, m.Persons.RequestPasswordReset(t.Context(), identity.Client{IP: "203.0.113.7"}, email, ""))
	return m.token(t)
}

// reset sets the new password by a token.
func (m *mailing) reset(t *testing.T, token string) error {
	t.Helper()
	return call(m.Persons.ResetPassword(t.Context(), identity.Client{IP: "203.0.113.7"}, identity.ResetRequest{Token: token, NewPassword: newPassword}))
}

func TestResetPassword(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	home := identity.Client{IP: "203.0.113.7", UserAgent: "Home/1.0"}
	in := core.signUp(t, home, "ann@example.com")
	other := core.signUp(t, home, "bob@example.com")
	ok(t, core.Persons.RequestPasswordReset(t.Context(), home, "ANN@example.com", ""))
	got := <-core.mails
	link := got.Link()
	token, found := strings.CutPrefix(link, "http://intents.example/console/reset-password?token=")
	if !found || len(token) != 43 || !cmp.Equal(got.To, []string{"ann@example.com"}) {
		t.Fatalf("%s has the link %s", got.To, link)
	}
	if n := pgtest.LookUp[int](t, core.Store, `SELECT count(*) FROM reset_tokens AS r WHERE strpos(r::text, $1) > 0`, token); n != 0 {
		t.Error("the token is stored")
	}
	if reset, err := core.Persons.ResetPassword(t.Context(), home, identity.ResetRequest{Token: token, NewPassword: newPassword}); err != nil || reset.Fresh {
		t.Fatal(reset, err)
	}
	is(t, "a session after the reset", call2(core.Sessions.Get(t.Context(), in.Token)), identity.ErrSignedOut)
	is(t, "another account's session", call2(core.Sessions.Get(t.Context(), other.Token)), nil)
	is(t, "the old password", call(core.Persons.SignIn(t.Context(), home, "ann@example.com", password)), identity.ErrCredentials)
	is(t, "the new password", call(core.Persons.SignIn(t.Context(), home, "ann@example.com", newPassword)), nil)
	want := []string{
		"signed_up|||203.0.113.7 Home/1.0", "signed_in||with a password|203.0.113.7 Home/1.0",
		"password_reset||by a link; all sessions ended|203.0.113.7 Home/1.0", "signed_in||with a password|203.0.113.7 Home/1.0",
	}
	equal(t, "the audit log", auditLog(t, core.Service, in.Account.ID), want)
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
			listed, err := core.Persons.IdentitiesToReset(t.Context(), token)
			if err != nil || len(listed) != c.listed || c.listed > 0 && listed[0].Identity != first.identity(t) {
				t.Errorf("listed %+v, %v", listed, err)
			}
			if none, err := core.Persons.IdentitiesToReset(t.Context(), account.NewLinkToken()); len(none) > 0 || err != nil {
				t.Errorf("a guess lists %+v, %v", none, err)
			}
			is(t, "another wallet", second.link(t, core.Service, in, ""), nil)
			reset, err := core.Persons.ResetPassword(t.Context(), identity.Client{IP: "203.0.113.7"}, identity.ResetRequest{
				Token: token, NewPassword: newPassword, UnlinkAccounts: c.unlink,
			})
			if err != nil || reset.Fresh != c.unproven {
				t.Fatalf("%+v, %v", reset, err)
			}
			left, err := core.Persons.Identities(t.Context(), in.Account.ID)
			if err != nil || len(left) != c.left {
				t.Errorf("left %+v, %v", left, err)
			}
			entered := first.signIn(t, core.Service)
			if own := entered.Account.ID == in.Account.ID; own != (c.left > 0) {
				t.Errorf("the wallet enters the account: %v", own)
			}
			logged := strings.Join(auditLog(t, core.Service, in.Account.ID), "\n")
			for _, w := range []wallet{first, second} {
				entry := "identity_unlinked||" + w.identity(t).String() + "; with the reset of the password|"
				if strings.Contains(logged, entry) != (c.left == 0) {
					t.Errorf("of %s: the audit log is\n%s", w.address, logged)
				}
			}
		})
	}
}
