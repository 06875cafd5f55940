package e2e_test

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/asynctest"
	"intents.internal/pkg/embedded"
)

const (
	callbackPath = "/auth/oauth2/callback/oidc"
	signInPage   = "/console/sign-in?error="
)

// People of a real OpenID Connect provider sign in: through its pages, as a browser would.
//
//nolint:paralleltest // Node takes every core it finds, and the parallel tests watch the clock
func TestOpenIDConnect(t *testing.T) {
	project := newNodeProject(t)
	port, err := embedded.FreePort("")
	if err != nil {
		t.Fatal(err)
	}
	issuer := fmt.Sprintf("http://127.0.0.1:%d", port)
	s, err := stack.Start(t.Context(), stack.Config{
		Mail: receiveMail,
		Data: t.TempDir(), Binaries: binaries, Listen: "127.0.0.1:0", Ephemeral: true, RedisURL: running.Env().RedisURL,
		CoreEnv: append([]string{"CORE_OIDC_ISSUER=" + issuer, "CORE_OIDC_CLIENT_ID=intents", "CORE_OIDC_CLIENT_SECRET=a secret: 100%"}, oneAddress...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	site := s.Env().GatewayURL

	early := expect[failure](t, newSurfer(t, site).here.do(http.MethodPost, "/auth/sign-in/oauth2", map[string]any{"providerId": "oidc"}), 503)
	if early.Code != "SERVICE_UNAVAILABLE" {
		t.Errorf("before the provider is there: %+v", early)
	}
	project.env = append(project.env, "ISSUER="+issuer, "CLIENT_ID=intents", "CLIENT_SECRET=a secret: 100%", "REDIRECT_URI="+site+callbackPath)
	startOIDCProvider(t, project)
	eventually(t, func() error { // core asks again within 30 seconds
		response := newSurfer(t, site).here.do(http.MethodPost, "/auth/sign-in/oauth2", map[string]any{"providerId": "oidc"})
		if response.Status != http.StatusOK {
			return fmt.Errorf("the provider is there, and sign-in answers %d", response.Status)
		}
		return nil
	})

	ann := newSurfer(t, site)
	used := ann.goThrough("ann", "/console/keys?a=b")
	ann.arrives(used, "/console/keys?a=b")
	id := ann.signedInAs("ann@example.com", "ann of the provider")
	ann.arrives(used, signInPage+"flow_expired") // the sign-in is over

	again := newSurfer(t, site)
	again.arrives(again.goThrough("ann", ""), "/console")
	if other := again.signedInAs("ann@example.com", "ann of the provider"); other != id {
		t.Error("the same person has two accounts")
	}

	t.Run("a link", func(t *testing.T) {
		v := newSurfer(t, site)
		v.arrives(v.goThrough("dora", ""), "/console")
		id := v.signedInAs("dora@example.com", "dora of the provider")
		link := func(login, arrival string) {
			t.Helper()
			w := newSurfer(t, site) // who is not signed in at the provider
			w.keep("intents.session", v.cookie("intents.session"))
			w.arrives(w.goThroughFrom("/auth/oauth2/link", login, ""), arrival)
		}
		link("ann", "/console/account?error=identity_taken")
		link("erin", "/console/account?done=linked")
		erin := newSurfer(t, site)
		erin.arrives(erin.goThrough("erin", ""), "/console")
		if other := erin.signedInAs("dora@example.com", "dora of the provider"); other != id {
			t.Error("the person who was linked has another account")
		}
	})

	asIs := func(_ *surfer, address string) string { return address }
	tampered := func(part int, value string) func(*surfer, string) string {
		return func(v *surfer, address string) string {
			parts := strings.Split(v.cookie("intents.oidc"), ".")
			parts[part] = value
			v.keep("intents.oidc", strings.Join(parts, "."))
			return address
		}
	}
	for name, c := range map[string]struct {
		login string
		// change is what happens before the browser goes to the address that the provider sends it to.
		change  func(v *surfer, address string) string
		arrival string
		email   string // of the account it is signed in to, empty for none
	}{
		"an address that is not verified": {"unsure-demo", asIs, "/console", "@oidc.invalid"},
		"an address that is taken":        {"demo", asIs, signInPage + "email_taken", ""},
		"denied":                          {"", asIs, signInPage + "oidc_denied", ""},
		"another state":                   {"carol", func(_ *surfer, address string) string { return strings.Replace(address, "state=", "state=x", 1) }, signInPage + "flow_expired", ""},
		"another nonce":                   {"carol", tampered(1, strings.Repeat("A", 26)), signInPage + "oidc_failed", ""},
		"another code verifier":           {"carol", tampered(2, strings.Repeat("A", 43)), signInPage + "oidc_failed", ""},
		"another browser": {"carol", func(v *surfer, address string) string {
			v.keep("intents.oidc", "")
			return address
		}, signInPage + "flow_expired", ""},
		"a code that was used": {"carol", func(v *surfer, address string) string {
			flow := v.cookie("intents.oidc")
			v.arrives(address, "/console")
			v.keep("intents.oidc", flow)
			v.keep("intents.session", "")
			return address
		}, signInPage + "oidc_failed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := newSurfer(t, site)
			v.arrives(c.change(v, v.goThrough(c.login, "")), c.arrival)
			v.signedInAs(c.email, c.login+" of the provider")
		})
	}
}

// startOIDCProvider returns when the provider listens.
func startOIDCProvider(t *testing.T, project *nodeProject) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "node", "oidc-provider.mjs")
	command.Dir, command.Env = project.dir, project.env
	var said asynctest.Buffer
	command.Stderr = &said
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if lines.Text() == "listening" {
			return
		}
	}
	t.Fatalf("the provider ended\n%s", said.String())
}

// surfer is a browser on its way between the site and the provider. It follows no redirect by itself.
type surfer struct {
	t    *testing.T
	site *url.URL
	// here speaks to the site, its answers held to openapi.json; http is for everything else, with the same cookies.
	here *client
	http *http.Client
}

func newSurfer(t *testing.T, site string) *surfer {
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
	return &surfer{
		t: t, site: parsed, http: &http.Client{Timeout: 20 * time.Second, Jar: jar, CheckRedirect: stay},
		here: &client{t: t, base: site, http: &http.Client{Timeout: 20 * time.Second, Transport: checked{t}, Jar: jar, CheckRedirect: stay}},
	}
}

func (v *surfer) cookie(name string) string {
	for _, c := range v.http.Jar.Cookies(v.site) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// keep sets a cookie of the site, or removes it where the value is empty.
func (v *surfer) keep(name, value string) {
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
func (v *surfer) goThrough(login, callbackURL string) string {
	v.t.Helper()
	return v.goThroughFrom("/auth/sign-in/oauth2", login, callbackURL)
}

// goThroughFrom is goThrough for a flow that this route starts.
func (v *surfer) goThroughFrom(route, login, callbackURL string) string {
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
func (v *surfer) visit(address string, form url.Values) (page, location string) {
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
func (v *surfer) arrives(address, path string) {
	v.t.Helper()
	if _, location := v.visit(address, nil); location != v.site.String()+path {
		v.t.Errorf("the browser arrives at %s, want %s", location, path)
	}
	if v.cookie("intents.oidc") != "" {
		v.t.Error("the cookie of the sign-in is still there")
	}
}

// signedInAs fails unless the browser is signed in to an account whose address ends so; an empty one wants it signed out.
func (v *surfer) signedInAs(email, name string) (id string) {
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
