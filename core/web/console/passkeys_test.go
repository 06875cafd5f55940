package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/console"
)

// withPasskeys has the site at a URL where browsers know passkeys.
func withPasskeys(c *identity.Config) { c.PublicURL = "https://intents.example" }

// passkey adds a passkey to ann@example.com, and confirms her sessions with it.
func (s *site) passkey(t *testing.T, name string) (id string) {
	t.Helper()
	id = uuid.NewString()
	pgtest.Exec(t, s.store, `INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, backup_eligible, backed_up,
			transports, aaguid, name, created_at)
		SELECT $1, id, uuid_send($1), 'key', 0, true, true, 'internal', $1, $2, '2026-01-02 03:04:05Z' FROM accounts`, id, name)
	pgtest.Exec(t, s.store, `UPDATE sessions SET factor = 'passkey', confirmed_at = now()`)
	return id
}

func TestShowAccount_Passkeys(t *testing.T) {
	t.Parallel()
	s := start(t, withPasskeys)
	ann := s.signedUp(t, "ann@example.com")
	page := ann.get("/console/account").is(http.StatusOK, "Passkeys", "None.", "Add a passkey", "Adding a passkey needs JavaScript")
	if !strings.Contains(page.body, `data-passkey="add"`) {
		t.Error("the page has no place for the script")
	}
	id := s.passkey(t, "laptop")
	ann.get("/console/account").is(http.StatusOK, "laptop", "2 Jan 2026, 03:04", "Not yet", "Yes", "Remove the passkey laptop", "Rename a passkey")

	const rename, remove = "/console/account/rename-passkey", "/console/account/remove-passkey"
	ann.post(rename, "passkey", id, "name", "desk").leadsTo("/console/account?done=passkey-renamed")
	ann.get("/console/account?done=passkey-renamed").is(http.StatusOK, "The passkey is renamed.", "desk")
	ann.post(rename, "passkey", id, "name", " ").is(http.StatusBadRequest).tied("name", "Name must have 1 to 64 characters.")
	ann.post(rename, "passkey", "x", "name", "desk").is(http.StatusNotFound, "No such passkey")

	ann.get(remove+"?passkey="+id).is(http.StatusOK, "Remove this passkey?", "desk", "Remove it")
	ann.get(remove+"?passkey="+uuid.NewString()).is(http.StatusNotFound, "No such passkey")
	ann.post(remove, "passkey", id).leadsTo("/console/account?done=passkey-removed")
	ann.post(remove, "passkey", id).is(http.StatusNotFound, "No such passkey")
	ann.get("/console/audit").is(http.StatusOK, "Passkey removed", "desk")
	for range 10 {
		s.passkey(t, "another")
	}
	ann.get("/console/account").is(http.StatusOK, "You have reached the maximum number of passkeys.")
}

// What needs a fresh session leads through one page and back: with the password, and of a person with a passkey with that alone.
func TestConfirmPerson(t *testing.T) {
	t.Parallel()
	s := start(t, withPasskeys)
	ann := s.signedUp(t, "ann@example.com")
	const confirm, back = "/console/account/confirm", "/console/account/confirm?next=%2Fconsole%2Faccount"
	ann.get(back).leadsTo("/console/account")
	pgtest.Exec(t, s.store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	if page := ann.get("/console/account").is(http.StatusOK, "Confirm it is you, to add a passkey"); !strings.Contains(page.body, `href="`+back+`"`) {
		t.Errorf("the page does not lead to the confirmation: %s", page.body)
	}
	ann.get(back).is(http.StatusOK, "Confirm it is you", "Your password, to confirm")
	ann.post(confirm, "next", "/console/account", "password", "wrong").is(http.StatusBadRequest).tied("password", "The password is wrong.")
	ann.post(confirm, "next", "https://evil.example", "password", password).leadsTo("/console")
	ann.post(confirm, "next", "/console/account", "password", password).leadsTo("/console/account")
	ann.get("/console/account").is(http.StatusOK, "Add a passkey")

	id := s.passkey(t, "laptop")
	pgtest.Exec(t, s.store, `UPDATE sessions SET confirmed_at = now() - interval '11 minutes'`)
	page := ann.get(back).is(http.StatusOK, "Confirm with a passkey", "Your password alone is not enough, because you have a passkey.")
	if !strings.Contains(page.body, `data-passkey="confirm" data-next="/console/account"`) || strings.Contains(page.body, `type="password"`) {
		t.Errorf("the page is for somebody without a passkey: %s", page.body)
	}
	ann.post(confirm, "next", "/console/account", "password", password).is(http.StatusForbidden).alerts("Confirm with your passkey that it is you")
	for path, fields := range map[string][]string{
		"/console/account/remove-passkey": {"passkey", id}, "/console/account/delete": {"password", ""},
		"/console/keys": append([]string{"name", "ci", "formToken", ann.get("/console/keys").field("formToken"), "password", password, "environment", "live"}, newKey[2:]...),
	} {
		refused := ann.post(path, fields...).is(http.StatusForbidden)
		refused.alerts("Confirm with your passkey that it is you")
		if !strings.Contains(refused.body, `href="/console/account/confirm?next=`) {
			t.Errorf("%s does not lead to the confirmation: %s", path, refused.body)
		}
	}
}

// A person with neither a password nor a passkey signs in again.
func TestConfirmPerson_SignIn(t *testing.T) {
	t.Parallel()
	s := start(t, withPasskeys)
	ann := s.signedUp(t, "ann@example.com")
	pgtest.Exec(t, s.store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	pgtest.Exec(t, s.store, `UPDATE accounts SET password_hash = ''`)
	ann.get("/console/account/confirm").is(http.StatusOK, "You have no password and no passkey. Sign out, sign in again the same way")
}

func TestSignIn_Passkey(t *testing.T) {
	t.Parallel()
	page := start(t, withPasskeys).browser(t).get("/console/sign-in?next=/console/keys").is(http.StatusOK, "Sign in with a passkey", "needs JavaScript")
	for _, part := range []string{`autocomplete="username webauthn"`, `data-passkey="sign-in" data-next="/console/keys"`} {
		if !strings.Contains(page.body, part) {
			t.Errorf("the page has no %s: %s", part, page.body)
		}
	}
	without := start(t)
	if page := without.browser(t).get("/console/sign-in").is(http.StatusOK); strings.Contains(page.body, "passkey") {
		t.Error("passkeys are offered where browsers know none")
	}
	if page := without.signedUp(t, "ann@example.com").get("/console/account").is(http.StatusOK); strings.Contains(page.text(), "asskey") {
		t.Error("the account page has passkeys where browsers know none")
	}
}

// Where the operator requires a second factor, the forms say what is missing.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	s := start(t, withPasskeys, func(c *identity.Config) { c.SecondFactor = true })
	ann := s.signedUp(t, "ann@example.com")
	live := func() *answer {
		return ann.post("/console/keys", append([]string{"name", "ci", "formToken", ann.get("/console/keys").field("formToken"), "environment", "live"}, newKey[2:]...)...)
	}
	live().is(http.StatusForbidden).alerts("The operator of this service requires a passkey for this.")
	s.passkey(t, "laptop")
	live().is(http.StatusOK, "Your new key")
}

// A page that is opened at an address of this machine leads to the public URL at localhost, where cookies and passkeys belong.
func TestConsole_AtLocalhost(t *testing.T) {
	t.Parallel()
	port := ""
	s := startPages(t, pgtest.New(t), func(*intents.Config) {}, func(c *console.Config) {
		_, port, _ = strings.Cut(strings.TrimPrefix(c.PublicURL, "http://"), ":")
		c.PublicURL = "http://localhost:" + port
	})
	anyone := s.browser(t)
	anyone.get("/console/sign-in?next=/console/keys").leadsTo("http://localhost:" + port + "/console/sign-in?next=/console/keys")
	if a := anyone.post("/console/sign-in", "email", "ann@example.com", "password", "x"); a.status == http.StatusSeeOther {
		t.Error("a form is redirected without its fields")
	}
	s.url = "http://localhost:" + port
	anyone.get("/console/sign-in").is(http.StatusOK, "Sign in")
}
