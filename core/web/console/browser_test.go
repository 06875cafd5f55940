package console_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"intents.internal/core/identity/account"
)

// browser keeps cookies, follows nothing and holds every page it gets to the rules for pages.
type browser struct {
	t    *testing.T
	site *site
	http *http.Client
}

func (s *site) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, site: s, http: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// signedUp is a browser with an account and a session; both are put where they belong, which takes no hashing.
func (s *site) signedUp(t *testing.T, email string) *browser {
	t.Helper()
	hash, err := knownHash()
	if err != nil {
		t.Fatal(err)
	}
	owner, err := account.New("Ann", email, hash, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	entry, err := account.NewAuditEntry(owner.ID, account.Actor{}, account.SignedUp, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.Identities.InsertAccount(t.Context(), owner, entry); err != nil {
		t.Fatal(err)
	}
	return s.session(t, owner, time.Now())
}

// session is a browser with a session of an account that began at a time.
func (s *site) session(t *testing.T, owner *account.Account, began time.Time) *browser {
	t.Helper()
	return s.sessionFrom(t, owner, "192.0.2.1", "test", began)
}

func (s *site) sessionFrom(t *testing.T, owner *account.Account, ip, userAgent string, began time.Time) *browser {
	t.Helper()
	session, token, err := account.NewSession(owner.ID, ip, userAgent, began)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := account.NewAuditEntry(owner.ID, account.Actor{PersonID: owner.ID, IPAddress: ip, UserAgent: userAgent}, account.SignedIn, began)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.Identities.InsertSession(t.Context(), session, owner, entry); err != nil {
		t.Fatal(err)
	}
	return s.browserWith(t, token)
}

// browserWith is a browser with the token of a session.
func (s *site) browserWith(t *testing.T, token string) *browser {
	t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser(t)
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "intents.session", Value: token, Path: "/"}})
	return b
}

// answer is a page or what led to one.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	body   string
	root   *html.Node
}

func (b *browser) get(path string) *answer {
	b.t.Helper()
	return b.send(http.MethodGet, path, nil)
}

// post sends a form; fields are names and values in turn.
func (b *browser) post(path string, fields ...string) *answer {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return b.send(http.MethodPost, path, strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded")
}

func (b *browser) send(method, path string, body io.Reader, header ...string) *answer {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.site.url+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", "192.0.2.1")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := b.http.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	a := &answer{t: b.t, what: method + " " + path, status: response.StatusCode, header: response.Header, body: string(raw)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") && response.Header.Get("Location") == "" {
		if a.root, err = html.Parse(bytes.NewReader(raw)); err != nil {
			b.t.Fatal(err)
		}
		a.inspect()
	}
	return a
}

// leadsTo expects a redirect to a path of the console.
func (a *answer) leadsTo(path string) {
	a.t.Helper()
	if got := a.header.Get("Location"); a.status != http.StatusSeeOther || got != path {
		a.t.Errorf("%s: %d to %q, want 303 to %q\n%s", a.what, a.status, got, path, a.text())
	}
}

// is expects a page of this status that says all of these.
func (a *answer) is(status int, says ...string) *answer {
	a.t.Helper()
	text := a.text()
	if a.status != status {
		a.t.Errorf("%s: %d, want %d\n%s", a.what, a.status, status, text)
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			a.t.Errorf("%s does not say %q:\n%s", a.what, s, text)
		}
	}
	return a
}

// newKey are the fields of a test key that never expires and may do everything.
var newKey = []string{"environment", "test", "expiresIn", "never", "intents:read", "1", "intents:write", "1", "webhooks", "1", "networks", ""}

// makeKey makes a key in the console and returns its id and whole text.
func (b *browser) makeKey(name string) (id, text string) {
	b.t.Helper()
	made := b.post("/console/keys", append(newKey, "name", name, "formToken", b.get("/console/keys").field("formToken"))...)
	made.is(http.StatusOK, "is ready", "shown this once")
	return strings.TrimPrefix(made.link("/console/keys/"), "/console/keys/"), made.element("key")
}
