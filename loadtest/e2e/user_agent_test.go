package e2e_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// userAgent is a browser between the site and the provider. It does not follow redirects by itself.
type userAgent struct {
	t    *testing.T
	site *url.URL
	// here speaks to the site, its answers held to openapi.json; http is for everything else, with the same cookies.
	here *client
	http *http.Client
}

func newUserAgent(t *testing.T, site string) *userAgent {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := url.Parse(site)
	if err != nil {
		t.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &userAgent{
		t: t, site: parsed, http: &http.Client{Timeout: 20 * time.Second, Jar: jar, CheckRedirect: stay},
		here: &client{t: t, base: site, http: &http.Client{Timeout: 20 * time.Second, Transport: checked{t}, Jar: jar, CheckRedirect: stay}},
	}
}

func (v *userAgent) cookie(name string) string {
	for _, c := range v.http.Jar.Cookies(v.site) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// keep sets a cookie of the site, or removes it where the value is empty.
func (v *userAgent) keep(name, value string) {
	cookie := &http.Cookie{Name: name, Value: value, Path: "/"}
	if value == "" {
		cookie.MaxAge = -1
	}
	v.http.Jar.SetCookies(v.site, []*http.Cookie{cookie})
}

var (
	formTarget = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	formPrompt = regexp.MustCompile(`name="prompt" value="([a-z]+)"`)
	abortLink  = regexp.MustCompile(`href="([^"]+/abort)"`)
)

// goThrough signs in at the provider, or gives up there if login is empty, and returns the address that the provider
// sends the browser back to.
func (v *userAgent) goThrough(login, callbackURL string) string {
	v.t.Helper()
	return v.goThroughFrom("/auth/sign-in/oauth2", login, callbackURL)
}

// goThroughFrom is goThrough for a flow that this route starts.
func (v *userAgent) goThroughFrom(route, login, callbackURL string) string {
	v.t.Helper()
	request := map[string]any{"providerId": "oidc"}
	if callbackURL != "" {
		request["callbackURL"] = callbackURL
	}
	started := expect[struct{ URL string }](v.t, v.here.do(http.MethodPost, route, request), 200)
	next, form := started.URL, url.Values(nil)
	for range 12 {
		page, location := v.visit(next, form)
		form = nil
		if location != "" {
			if strings.HasPrefix(location, v.site.String()) {
				return location
			}
			next = location
			continue
		}
		target, prompt := formTarget.FindStringSubmatch(page), formPrompt.FindStringSubmatch(page)
		if target == nil || prompt == nil {
			v.t.Fatalf("the provider shows\n%s", page)
		}
		next, form = html.UnescapeString(target[1]), url.Values{"prompt": {prompt[1]}, "login": {login}, "password": {"any"}}
		if abort := abortLink.FindStringSubmatch(page); login == "" && abort != nil {
			next, form = html.UnescapeString(abort[1]), nil
		}
	}
	v.t.Fatal("the provider sends the browser round in circles")
	return ""
}

// visit loads a page of the provider, or sends it a form, and returns the page or where it redirects to.
func (v *userAgent) visit(address string, form url.Values) (page, location string) {
	v.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(v.t.Context(), method, address, body)
	if err != nil {
		v.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := v.http.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if to, err := response.Location(); err == nil {
		location = to.String()
	} else if response.StatusCode != http.StatusOK {
		v.t.Fatalf("%s answers %d\n%s", address, response.StatusCode, read)
	}
	return string(read), location
}

// arrives follows the provider's redirect back to the site and fails unless that sends the browser on to path.
func (v *userAgent) arrives(address, path string) {
	v.t.Helper()
	if _, location := v.visit(address, nil); location != v.site.String()+path {
		v.t.Errorf("the browser arrives at %s, want %s", location, path)
	}
	if v.cookie("intents.oidc") != "" {
		v.t.Error("the cookie of the sign-in is still there")
	}
}

// signedInAs fails unless the browser is signed in to an account whose address ends so; an empty one wants it signed out.
func (v *userAgent) signedInAs(email, name string) (id string) {
	v.t.Helper()
	held := expect[*struct {
		User struct{ ID, Email, Name string }
	}](v.t, v.here.do(http.MethodGet, "/auth/get-session", nil), 200)
	switch {
	case email == "" && held == nil:
		return ""
	case email == "" || held == nil || !strings.HasSuffix(held.User.Email, email) || held.User.Name != name:
		v.t.Errorf("signed in as %+v, want %s", held, email)
		return ""
	}
	return held.User.ID
}
