package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/retrytest"
)

// Whatever is wrong with a form is said at its field, and nothing is done.
func TestForms_InvalidFields(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	id, _ := ann.makeKey("one")
	page := "/console/keys/" + id
	long := strings.Repeat("x", 60<<10)
	stranger := s.browser(t)
	for _, c := range []struct {
		as             *browser
		path           string
		fields         []string
		status         int
		field, problem string
	}{
		{stranger, "/console/sign-up", []string{"name", "", "email", "ann", "password", password}, 400, "email", "E-mail address must be an e-mail address such as name@example.com."},
		{stranger, "/console/sign-up", []string{"name", "", "email", "bob@example.com", "password", "short"}, 400, "password", "Password must have 8 to 128 characters."},
		{stranger, "/console/sign-up", []string{"name", long, "email", "bob@example.com", "password", password}, 400, "name", "Name must have 1 to 128 characters."},
		{stranger, "/console/sign-up", []string{"name", "Bob", "email", "ANN@example.com", "password", password}, 422, "email", "An account with this e-mail address exists. Sign in, or use another address."},
		{stranger, "/console/sign-in", []string{"email", "ann@example.com", "password", "wrong"}, 401, "", "The e-mail address or the password is wrong."},
		{stranger, "/console/sign-in", []string{"email", "nobody@example.com", "password", "wrong"}, 401, "", "The e-mail address or the password is wrong."},
		{stranger, "/console/sign-in", []string{"email", "a\x00b@example.com", "password", "wrong"}, 400, "email", "E-mail address holds characters that cannot be stored."},
		{ann, "/console/keys", []string{"name", " ", "environment", "test", "expiresIn", "never", "webhooks", "1"}, 400, "name", "Name must have 1 to 64 characters."},
		{ann, "/console/keys", []string{"name", "a\x00b", "environment", "test", "expiresIn", "never", "webhooks", "1"}, 400, "name", "Name holds characters that cannot be stored."},
		{ann, "/console/keys", []string{"name", "a", "environment", "prod", "expiresIn", "never", "webhooks", "1"}, 400, "environment", `Environment must be "test" or "live".`},
		{ann, "/console/keys", []string{"name", "a", "environment", "test", "expiresIn", "soon", "webhooks", "1"}, 400, "expiresIn", "Expiry must be null or 1 to 315360000 seconds."},
		{ann, page + "/expire", []string{"expiresIn", "0"}, 400, "expiresIn", "Expiry must be null or 1 to 315360000 seconds."},
		{ann, page + "/rotate", []string{"gracePeriod", "86401"}, 400, "gracePeriod", "The grace period must be 0 to 86400 seconds."},
	} {
		a := c.as.post(c.path, c.fields...).is(c.status, c.problem)
		if c.field == "" {
			a.alerts(c.problem)
		} else {
			a.tied(c.field, c.problem)
		}
		if strings.Contains(a.body, strings.Repeat("x", 400)) || strings.Contains(a.body, password) {
			t.Errorf("%s sends what it should not back", a.what)
		}
	}
	ann.get("/console/keys").is(http.StatusOK, "1 of 100", "one")
}

// What no form of the console sends is answered with a page that says so.
func TestForms_Malformed(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	id, _ := ann.makeKey("one")
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		path, body, media string
		status            int
		says              string
	}{
		{"/console/keys", "name=a&userId=1", form, 400, "has a field that the page does not have"},
		{"/console/keys", "name=a&name=b", form, 400, "or one twice"},
		{"/console/keys", "name=a&environment=test&expiresIn=never&webhooks=1&formToken=short", form, 400, "Not this page's form"},
		{"/console/keys", "name=%zz", form, 415, "cannot be read as this page's form"},
		{"/console/keys", `{"name":"a"}`, "application/json", 415, "cannot be read as this page's form"},
		{"/console/keys", "name=" + strings.Repeat("x", 64<<10), form, 413, "at most 64 KiB"},
		{"/console/keys/" + id + "/delete", "sure=yes", form, 400, "has a field that the page does not have"},
		{"/console/account/revoke-session", "session=x", form, 404, "no such key or session"},
		{"/console/keys/" + uuid.NewString() + "/rename", "name=a", form, 404, "no such key"},
		{"/console/keys/1/rename", "name=a", form, 404, "no such key"},
		{"/console/nothing", "", form, 404, "There is nothing at this address."},
	} {
		a := ann.send(http.MethodPost, c.path, strings.NewReader(c.body), "Content-Type", c.media)
		a.is(c.status, c.says).alerts(c.says)
	}
	for path, want := range map[string]int{
		"/console/nothing": 404, "/console/keys/nothing": 404, "/console/transfers/nothing": 404, "/console/transfers/" + uuid.NewString(): 404,
		"/console/batches/nothing": 404, "/console/batches/" + uuid.NewString(): 404, "/console/batches": 404,
		"/console/audit?before=x": 400, "/console/audit?after=x": 400, "/console?x=1": 400,
		"/console/transfers?status=lost": 400, "/console/transfers?environment=prod": 400, "/console/transfers?type=gift": 400, "/console/transfers?chain=1": 400, "/console/transfers?after=1": 400,
		"/console/transfers?batch=1": 400, "/console/transfers?since=1969-12-31": 400, "/console/transfers.csv?until=today": 400, "/console/transfers.csv?after=1": 400,
	} {
		if a := ann.get(path); a.status != want {
			t.Errorf("GET %s: %d, want %d\n%s", path, a.status, want, a.text())
		}
	}
	ann.get("/console/transfers?status=lost").is(http.StatusBadRequest).tied("status", "There is no such status.")
	// The address of a form's answer leads to the page with the form.
	ann.get("/console/keys/" + id + "/rotate").leadsTo("/console/keys/" + id)
	ann.get("/console/").leadsTo("/console")
}

func TestForms_CrossOrigin(t *testing.T) {
	t.Parallel()
	ann := start(t).signedUp(t, "ann@example.com")
	for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}} {
		a := ann.send(http.MethodPost, "/console/sign-out", nil, "Content-Type", "application/x-www-form-urlencoded", header[0], header[1])
		a.is(http.StatusForbidden, "came from another site").alerts("nothing was done")
	}
	ann.get("/console/keys").is(http.StatusOK) // still signed in
	ann.send(http.MethodPost, "/console/sign-out", nil, "Sec-Fetch-Site", "same-origin").leadsTo("/console/sign-in?done=signed-out")
}

// Strangers are asked to sign in and come back to where they were, but never to another site.
func TestSignedOut(t *testing.T) {
	t.Parallel()
	s := start(t)
	stranger := s.browser(t)
	key := "/console/keys/" + uuid.NewString()
	for _, path := range []string{
		"/console", key, key + "/delete", "/console/transfers?status=failed&type=swap", "/console/transfers/" + uuid.NewString(), "/console/audit", "/console/account", "/console/account/password",
	} {
		stranger.get(path).leadsTo("/console/sign-in?next=" + url.QueryEscape(path))
	}
	for path, next := range map[string]string{
		"/console/keys": "/console", key + "/rename": key, key + "/enable": key, key + "/disable": key, key + "/expire": key,
		key + "/rotate": key, key + "/delete": key, "/console/account/revoke-session": "/console/account",
		"/console/account/revoke-others": "/console/account", "/console/account/delete": "/console/account",
		"/console/account/password": "/console/account",
	} {
		stranger.post(path).leadsTo("/console/sign-in?next=" + url.QueryEscape(next))
	}
	ann := s.signedUp(t, "ann@example.com")
	for next, want := range map[string]string{
		"/console/transfers?status=failed": "/console/transfers?status=failed",
		"/console/keys/a":                  "/console/keys/a",
		"":                                 "/console",
		"/consoles":                        "/console",
		"/":                                "/console",
		"//evil.example/console":           "/console",
		"/console/../auth":                 "/console",
		"/console//evil.example":           "/console",
		"/console/sign-out":                "/console",
		"/console/%2e%2e/auth":             "/console",
	} {
		ann.get("/console/sign-in?next=" + url.QueryEscape(next)).leadsTo(want) // there is nothing to sign in for
	}
}

func TestExpiredSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.signedUp(t, "ann@example.com")
	owner := s.ann(t)
	gone := s.session(t, owner, time.Now().Add(-account.SessionLifetime-time.Minute)) // by the database's clock too
	gone.get("/console/audit").leadsTo("/console/sign-in?done=ended&next=%2Fconsole%2Faudit")
	gone.post("/console/keys", "name", "a").leadsTo("/console/sign-in?done=ended&next=%2Fconsole")
	if a := gone.get("/console/sign-in?done=ended&next=%2Fconsole%2Faudit").is(200, "Your session has ended."); a.field("next") != "/console/audit" {
		t.Errorf("the sign-in page leads to %q", a.field("next"))
	}
}

// Nothing of one account can be seen or changed by another.
func TestOtherAccounts(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := s.signedUp(t, "ann@example.com"), s.signedUp(t, "bob@example.com")
	id, _ := ann.makeKey("secret plan")
	page := "/console/keys/" + id
	bob.get(page).is(http.StatusNotFound)
	bob.get(page + "/delete").is(http.StatusNotFound)
	for _, form := range [][]string{
		{"/rename", "name", "x"}, {"/enable"}, {"/disable"}, {"/expire", "expiresIn", "never"}, {"/rotate", "gracePeriod", "0"}, {"/delete"},
	} {
		bob.post(page+form[0], form[1:]...).is(http.StatusNotFound)
	}
	for _, path := range []string{"/console", "/console/audit"} {
		if strings.Contains(bob.get(path).body, "secret plan") {
			t.Errorf("%s shows another's key", path)
		}
	}
	ann.get(page).is(http.StatusOK, "secret plan", "Enabled")
}

func TestPageError_TooManyRequests(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *identity.Config) {
		c.Limits.SignInPerAccount, c.Limits.KeysPerAccount, c.Limits.SignUpPerIP = 1, 1, 1
	})
	ann := s.signedUp(t, "ann@example.com")
	ann.makeKey("one")
	limited := func(a *answer, says string) {
		t.Helper()
		a.is(http.StatusTooManyRequests, "There were too many attempts. Try again in ", says).alerts("Try again in")
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s does not say when to try again", a.what)
		}
	}
	limited(ann.post("/console/keys", append(newKey, "name", "two", "formToken", ann.get("/console/keys").field("formToken"))...), "Create a key")
	stranger := s.browser(t)
	stranger.post("/console/sign-in", "email", "ann@example.com", "password", "wrong").is(http.StatusUnauthorized)
	a := stranger.post("/console/sign-in", "email", "ann@example.com", "password", password)
	limited(a, "Password")
	if a.field("email") != "ann@example.com" {
		t.Error("what was typed is gone")
	}
	stranger.post("/console/sign-up", "email", "ann@example.com", "password", password).is(http.StatusUnprocessableEntity)
	limited(stranger.post("/console/sign-up", "email", "ann@example.com", "password", password), "Sign up")

	// Pages without a session are limited by network, and nobody who is signed in there is refused.
	for n := 0; ; n++ {
		if a = stranger.get("/console/forgot-password"); a.status == http.StatusTooManyRequests {
			break
		} else if n > 10_000 {
			t.Fatal("pages without a session are never refused")
		}
	}
	limited(a, "Too many attempts")
	ann.get("/console/keys").is(http.StatusOK)
}

func TestSignUp_Closed(t *testing.T) {
	t.Parallel()
	anyone := start(t, func(c *identity.Config) { c.SignUpOpen = false }).browser(t)
	anyone.get("/console/sign-up").is(http.StatusOK, "Sign-up is closed.")
	anyone.post("/console/sign-up", "email", "ann@example.com", "password", password).is(http.StatusForbidden).alerts("Sign-up is closed.")
	anyone.get("/console/sign-in?error=sign_up_closed").is(http.StatusOK).alerts("sign-up is closed")
}

func TestPageError_DatabaseDown(t *testing.T) {
	t.Parallel()
	gate := pgtest.NewGate(t, pgtest.Database(t))
	s := startOn(t, pgtest.Open(t, gate.URL))
	ann := s.signedUp(t, "ann@example.com")
	gate.Shut()
	for _, a := range []*answer{
		ann.get("/console/keys"), ann.get("/console/transfers"), ann.post("/console/keys", "name", "a"), ann.post("/console/sign-out"),
		s.browser(t).post("/console/sign-in", "email", "ann@example.com", "password", password),
	} {
		a.is(http.StatusServiceUnavailable, "The database does not answer at this moment.").alerts("try again")
		if after := a.header.Get("Retry-After"); retrytest.Least(a.status, after, "1") != "1" {
			t.Errorf("%s: Retry-After %q", a.what, after)
		}
	}
	retrytest.HasJitter(t, func() string { return ann.get("/console/keys").header.Get("Retry-After") })
	s.browser(t).get("/console/sign-in").is(http.StatusOK, "Sign in") // it needs nothing
}

// The cause of a failure is in the log and not on the page.
func TestPageError_Unexpected(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	pgtest.Exec(t, s.store, `ALTER TABLE api_keys RENAME TO elsewhere`)
	if a := ann.get("/console/keys").is(http.StatusInternalServerError, "Something went wrong here"); strings.Contains(a.body, "api_keys") {
		t.Errorf("the page tells the cause:\n%s", a.body)
	}
	if log := s.log.String(); !strings.Contains(log, `"route":"GET /console/keys"`) || !strings.Contains(log, "does not exist") {
		t.Errorf("the log does not tell the cause:\n%s", log)
	}
}
