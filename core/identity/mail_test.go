package identity_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
	"intents.internal/core/outbound"
	"intents.internal/core/pgtest"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
)

// A request is answered alike for every address, and mails go only to the stored address of an account that may sign in.
func TestRequestPasswordReset_Addresses(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	for _, email := range []string{"kate@example.com", "disabled@example.com", "ended@example.com"} {
		core.signUp(t, identity.Client{}, email)
	}
	pgtest.Exec(t, core.Store, `UPDATE accounts SET disabled_at = now() WHERE email LIKE 'disabled%'`)
	pgtest.Exec(t, core.Store, `UPDATE accounts SET deleted_at = now() WHERE email LIKE 'ended%'`)
	subject := must(account.NewWalletIdentity("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"))(t)
	wallet := must(account.NewWalletAccount(subject, time.Now()))(t)
	entry := account.AuditEntry{ID: uuid.Must(uuid.NewV7()), AccountID: wallet.ID, Action: account.SignedUp, OccurredAt: time.Now()}
	ok(t, core.Store.InsertAccountWithIdentity(t.Context(), wallet, subject, entry))
	for email, want := range map[string][]string{
		"kate@example.com":       {"kate@example.com"},
		"KATE@Example.COM":       {"kate@example.com"},
		"\u212aate@example.com":  {"kate@example.com"}, // the Kelvin sign, whose lower case is k: the mail goes to the account's address
		"k\u0430te@example.com":  nil,                  // a Cyrillic а
		"kate@ex\u0430mple.com":  nil,
		"kate\u200b@example.com": nil, // a zero-width space
		"kate+tag@example.com":   nil,
		"nobody@example.com":     nil,
		"disabled@example.com":   nil,
		"ended@example.com":      nil,
		wallet.Email:             nil,
	} {
		is(t, email, core.Persons.RequestPasswordReset(t.Context(), identity.Client{IP: "203.0.113.7"}, email, ""), nil)
		equal(t, fmt.Sprintf("%q is mailed to", email), core.settle(t), want)
	}
	isInvalid(t, "email", core.Persons.RequestPasswordReset(t.Context(), identity.Client{IP: "203.0.113.7"}, "kate@example.com, eve@example.com", ""))
	if to := core.settle(t); len(to) > 0 {
		t.Errorf("mails went to %q", to)
	}
}

// What Postgres is asked during a request is the same for every address, so that its time does not tell which have an account.
func TestMails_SameQueries(t *testing.T) {
	t.Parallel()
	store, log := startLogging(t, map[string]string{"log_statement": "all", "log_parameter_max_length": "0"})
	core := newServiceOn(t, store, withPasswords(t), func(c *identity.Config) { c.MailQueued = func() {} })
	(&mailing{Service: core}).signUp(t, identity.Client{}, "somebody@example.com")
	varying := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\w+@example\.com|\d{4}-\d\d-\d\d [0-9:.+]+`)
	v := identity.Client{IP: "203.0.113.7"}
	for what, request := range map[string]func(email string) error{
		"request-password-reset":  func(email string) error { return core.Persons.RequestPasswordReset(t.Context(), v, email, "") },
		"send-verification-email": func(email string) error { return core.Persons.SendVerificationEmail(t.Context(), v, email, "") },
		"sign-up":                 func(email string) error { return call(core.Persons.SignUp(t.Context(), v, "Ann", email, password, "")) },
	} {
		work := func(email string) []string {
			before, after := what+" before "+email, what+" after "+email
			logUpTo(t, store, log, before)
			ok(t, request(email))
			_, text, _ := strings.Cut(logUpTo(t, store, log, after), before)
			var statements []string
			for line := range strings.Lines(text) {
				if _, statement, found := strings.Cut(line, "LOG:  "); found && !strings.Contains(statement, after) {
					statements = append(statements, varying.ReplaceAllString(statement, "<>"))
				}
			}
			return statements
		}
		known, unknown := work("somebody@example.com"), work("nobody@example.com")
		if diff := cmp.Diff(known, unknown); diff != "" || len(known) == 0 {
			t.Errorf("%s: %q (-with an account +without):\n%s", what, known, diff)
		}
	}
}

// Many requests are a few mails, whether they are for one address or come from one.
func TestRequestPasswordReset_Flood(t *testing.T) {
	t.Parallel()
	core := newMailing(t, func(c *identity.Config) { c.Limits.MailsPerAddress, c.Limits.MailsPerIP = 5, 20 })
	core.signUp(t, identity.Client{}, "ann@example.com")
	flood := func(client func(n int) identity.Client, email func(n int) string) (taken int) {
		for n := range 36 {
			err := core.Persons.RequestPasswordReset(t.Context(), client(n), email(n), "")
			if err == nil {
				taken++
			} else if wait := waits(t, err); wait <= 0 || wait > time.Hour {
				t.Fatalf("request %d waits %s", n, wait)
			}
		}
		return taken
	}
	for email, mails := range map[string]int{"ann@example.com": 20, "nobody@example.com": 0} {
		networks := func(n int) identity.Client {
			return identity.Client{IP: fmt.Sprintf("198.51.%d.%d", len(email), n%6)}
		}
		if taken := flood(networks, func(int) string { return email }); taken != 6*5 {
			t.Errorf("%d requests for %s were taken", taken, email)
		}
		if to := core.settle(t); len(to) != mails {
			t.Errorf("%s got %d mails", email, len(to))
		}
	}
	here := func(int) identity.Client { return identity.Client{IP: "203.0.113.7"} }
	if taken := flood(here, func(n int) string { return fmt.Sprintf("person-%d@example.com", n) }); taken != 20 {
		t.Errorf("%d requests from one address were taken", taken)
	}
}

// A stranger who asks for all the mails that a network may have sent to an address keeps none from its owner: not a mail of the same
// kind, not one of another, whether or not the address has an account yet.
func TestMails_StrangersLimit(t *testing.T) {
	t.Parallel()
	core := newMailing(t, func(c *identity.Config) { c.Limits.MailsPerAddress = 2 })
	core.signUp(t, identity.Client{}, "ann@example.com")
	stranger, owner := identity.Client{IP: "198.51.100.1"}, identity.Client{IP: "203.0.113.7"}
	for _, email := range []string{"ann@example.com", "new@example.com"} {
		for core.Persons.RequestPasswordReset(t.Context(), stranger, email, "") == nil {
		}
	}
	core.settle(t)
	is(t, "the owner asks for a link", core.Persons.RequestPasswordReset(t.Context(), owner, "ann@example.com", ""), nil)
	equal(t, "mailed to", core.settle(t), []string{"ann@example.com"})
	is(t, "the owner signs up", call(core.Persons.SignUp(t.Context(), owner, "New", "new@example.com", password, "")), nil)
	equal(t, "mailed to", core.settle(t), []string{"new@example.com"})
}

// Where a mailed link leads is no choice of whoever asks for the mail.
func TestMails_Destinations(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	core.signUp(t, identity.Client{}, "ann@example.com")
	core.signUpUnverified(t, identity.Client{}, "bob@example.com")
	for given, callback := range map[string]string{
		"": "", "/v2/health?": "", "/v2/health": "", "/auth/sign-out": "", "/app": "", "/console/../v2/health": "", "/console?x": "", "/consoles": "", "/console/%2e%2e/v2": "",
		"/console": "/console", "/console/keys": "/console/keys", "http://intents.example/console/keys": "/console/keys",
	} {
		ok(t, core.Persons.RequestPasswordReset(t.Context(), identity.Client{}, "ann@example.com", given))
		if link := (<-core.mails).Link(); !strings.HasPrefix(link, "http://intents.example"+identity.ResetPath+"?token=") {
			t.Errorf("%q: the link to a new password is %s", given, link)
		}
		ok(t, core.Persons.SendVerificationEmail(t.Context(), identity.Client{}, "bob@example.com", given))
		link, err := url.Parse((<-core.mails).Link())
		if err != nil || link.Path != identity.LinkPath || link.Query().Get("callbackURL") != callback {
			t.Errorf("%q: the link that verifies an address is %s, %v", given, link, err)
		}
	}
}

func TestRequestPasswordReset_NoMail(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	is(t, "without a mail server", core.Persons.RequestPasswordReset(t.Context(), identity.Client{}, "ann@example.com", ""), identity.ErrMailOff)
	if message, err := core.Composers()[mail.KindResetPassword](t.Context(), &mail.Queued{Draft: mail.Draft{Recipient: "ann@example.com"}}); message != nil || err != nil {
		t.Errorf("to nobody: %+v, %v", message, err)
	}
}

// The owners of an account are told that a webhook was disabled, with a link to it and without its URL, unless it is enabled again.
func TestComposeDisabled(t *testing.T) {
	t.Parallel()
	core := newMailing(t)
	ann := signedIn(t, core.Service, "ann@example.com")
	shop := ann.shares("Shop <x.y>")
	sealer := must(webhooks.NewSealer(make([]byte, 32), nil))(t)
	rules := &webhooks.Rules{Networks: outbound.NewNetworks([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}), Sealer: sealer}
	entry := must(account.NewAuditEntry(shop, account.Actor{}, account.WebhookCreated, time.Now()))(t)
	e := must2(rules.New(feed.Owner{AccountID: shop, Environment: network.Test}, webhooks.Draft{URL: "http://127.0.0.1/secret-path"}, core.Store.Now()))(t)
	ok(t, core.rooms.Webhooks.InsertWebhook(t.Context(), access.OfOperator, e, entry, [32]byte{}))
	ok(t, call(core.rooms.Webhooks.TestWebhook(t.Context(), access.OfOperator, e.Owner(), e.ID, feed.TypeWebhookTest)))
	deliveries, _, err := core.rooms.Webhooks.Deliveries(t.Context(), e.Owner(), e.ID, webhooks.DeliveryQuery{Limit: 1})
	if err != nil || len(deliveries) != 1 {
		t.Fatalf("%+v, %v", deliveries, err)
	}
	gone := webhooks.Attempt{Outcome: webhooks.OtherStatus, ResponseStatus: http.StatusGone, EndedAt: core.Store.Now()}
	record := webhooks.AttemptRecord{Endpoint: e, Delivery: deliveries[0], Attempt: gone}
	if recorded, err := core.rooms.Webhooks.RecordAttempts(t.Context(), []webhooks.AttemptRecord{record}, true); err != nil || len(recorded.Disabled) != 1 {
		t.Fatalf("%+v, %v", recorded, err)
	}
	core.MailQueued()
	mailed := <-core.mails
	equal(t, "mailed to", mailed.To, []string{"ann@example.com"})
	if link := mailed.Link(); !strings.HasSuffix(link, "/console/webhooks/"+e.ID.String()) {
		t.Errorf("the link is %q", link)
	}
	says(t, string(mailed.Data), []string{"410 Gone", "Shop x y"}, []string{"secret-path", "x.y"})
	queued := &mail.Queued{Draft: mail.Draft{
		Kind: mail.KindWebhookDisabled, Recipient: "ann@example.com", AccountID: shop, WebhookID: e.ID,
	}}
	compose := func(why string, want bool) {
		t.Helper()
		if message, err := core.composers()[queued.Kind](t.Context(), queued); err != nil || (message != nil) != want {
			t.Errorf("%s: %+v, %v", why, message, err)
		}
	}
	compose("to an owner", true)
	queued.Recipient = "eve@example.com"
	compose("to another person", false)
	queued.Recipient = "ann@example.com"
	entry = must(account.NewAuditEntry(shop, account.Actor{}, account.WebhookUpdated, time.Now()))(t)
	ok(t, call(core.rooms.Webhooks.ChangeWebhook(t.Context(), access.OfOperator, e.Owner(), e.ID, &entry, func(e *webhooks.Endpoint) (string, error) {
		return rules.Change(e, webhooks.Change{Enabled: new(true)}, core.Store.Now())
	})))
	compose("after it was enabled", false)
	queued.WebhookID = uuid.New()
	compose("after it was deleted", false)
}
