package auth_test

import (
	"fmt"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

func TestStartOIDC(t *testing.T) {
	t.Parallel()
	p := webtest.StartOpenIDProvider(t)
	s := webtest.Start(t, p.Settings)
	const path = "/auth/sign-in/oauth2"
	elsewhere := webtest.Invalid(t, "/callbackURL", "must be a path on this site, such as /console")
	for request, expected := range map[string]webtest.Answer{
		`{}`:                      webtest.Invalid(t, "/providerId", `must be "oidc"`),
		`{"providerId":"google"}`: webtest.Invalid(t, "/providerId", `must be "oidc"`),
		`{"providerId":"oidc","scopes":["admin"]}`:                   webtest.Invalid(t, "/scopes", "is not a known field"),
		`{"providerId":"oidc","callbackURL":"https://evil.example"}`: elsewhere,
	} {
		webtest.Same(t, request, expected, s.Call(t, "POST", path, request))
	}
	for _, request := range []string{`{"providerId":"oidc"}`, `{"providerId":"oidc","callbackURL":"/console/keys?a=b"}`} {
		got := s.Call(t, "POST", path, request)
		body, _ := got.Body.(map[string]any)
		to, _ := body["url"].(string)
		cookie := got.Header["Set-Cookie"]
		webtest.Same(t, request, webtest.Want(t, 200, `{"url":`+quoted(to)+`,"redirect":true}`, "Set-Cookie", cookie, "Cache-Control", "no-store"), got)
		if !strings.HasPrefix(to, p.URL+"/auth?") || !strings.HasPrefix(cookie, "intents.oidc=") ||
			!strings.HasSuffix(cookie, "; Path=/; Max-Age=600; HttpOnly; SameSite=Lax") {
			t.Errorf("to %s with %s", to, cookie)
		}
	}
	secure := webtest.StartOn(t, s.Store, func(c *webtest.Settings) {
		c.API.PublicURL, c.Identity.PublicURL = "https://intents.example", "https://intents.example"
	}, p.Settings)
	if cookie := secure.Call(t, "POST", path, `{"providerId":"oidc"}`).Header["Set-Cookie"]; !strings.HasPrefix(cookie, "__Host-intents.oidc=") ||
		!strings.HasSuffix(cookie, "; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax") {
		t.Errorf("over https the cookie is %s", cookie)
	}
	off := webtest.Refused(t, 404, "NOT_FOUND", "Sign-in with OpenID Connect is not configured here.")
	none := webtest.StartOn(t, s.Store)
	webtest.Same(t, "without a provider", off, none.Call(t, "POST", path, `{"providerId":"oidc"}`))
	webtest.Same(t, "a link without a provider", off, none.Call(t, "POST", "/auth/oauth2/link", `{"providerId":"oidc"}`, none.SignUp(t, "off@example.com")...))
	webtest.Same(t, "back without a provider", off, none.Call(t, "GET", "/auth/oauth2/callback/oidc?code=a&state=b", ""))

	early := webtest.StartOn(t, s.Store, p.Undiscovered)
	webtest.Same(t, "before the provider is discovered",
		webtest.Refused(t, 503, "SERVICE_UNAVAILABLE", "The OpenID Connect provider does not answer; try again in a moment.", "Retry-After", "1"),
		early.Call(t, "POST", path, `{"providerId":"oidc"}`))
	if log := early.Log.String(); !strings.Contains(log, "CORE_OIDC_ISSUER") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

func TestFinishOIDC(t *testing.T) {
	t.Parallel()
	p := webtest.StartOpenIDProvider(t)
	s := webtest.Start(t, p.Settings)
	s.SignUp(t, "bob@example.com")
	pgtest.Exec(t, s.Store, `UPDATE accounts SET email_verified_at = now()`)
	const cleared = "intents.oidc=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
	seeOther := func(path, cookies string) webtest.Answer {
		return webtest.Answer{Status: 303, Header: map[string]string{"Location": path, "Set-Cookie": cookies, "Cache-Control": "no-store"}}
	}
	failed := func(code string) webtest.Answer { return seeOther("/console/sign-in?error="+code, cleared) }
	tampered := func(cookie, callback string) string {
		return cookie[:strings.IndexByte(cookie, '~')+1] + callback
	}
	for _, c := range []struct {
		name, callback string
		query          func(state string) string
		cookie         func(string) string
		expected       webtest.Answer
	}{
		{"signed in", "", func(state string) string { return "code=ann&state=" + state }, nil, seeOther("/console", cleared+"\n"+cookieSet)},
		{"to a page", "/console/keys?a=b#c", func(state string) string { return "code=ann&iss=x&session_state=y&state=" + state }, nil, seeOther("/console/keys?a=b#c", cleared+"\n"+cookieSet)},
		{"to another site", "", func(state string) string { return "code=ann&state=" + state }, func(c string) string { return tampered(c, "Ly9ldmlsLmV4YW1wbGU") }, seeOther("/console", cleared+"\n"+cookieSet)},
		{"to nowhere", "", func(state string) string { return "code=ann&state=" + state }, func(c string) string { return tampered(c, "%") }, seeOther("/console", cleared+"\n"+cookieSet)},
		{"denied", "", func(state string) string { return "error=access_denied&state=" + state }, nil, failed("oidc_denied")},
		{"an error of the provider", "", func(state string) string { return "error=server_error&state=" + state }, nil, failed("oidc_failed")},
		{"a code of nobody", "", func(state string) string { return "code=nobody&state=" + state }, nil, failed("oidc_failed")},
		{"no code", "", func(state string) string { return "state=" + state }, nil, failed("oidc_failed")},
		{"an address that is taken", "", func(state string) string { return "code=bob&state=" + state }, nil, failed("email_taken")},
	} {
		cookie, state := p.Begin(t, s, c.callback)
		if c.cookie != nil {
			cookie = c.cookie(cookie)
		}
		webtest.Same(t, c.name, c.expected, s.Call(t, "GET", "/auth/oauth2/callback/oidc?"+c.query(state), "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site"))
	}
	for query, code := range map[string]string{"%": "oidc_failed", "code=ann&state=guess": "flow_expired"} { // of no flow
		cookie, _ := p.Begin(t, s, "")
		response := s.Send(t, "GET", "/auth/oauth2/callback/oidc?"+query, "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site")
		webtest.ReadAll(t, response)
		if to, set := response.Header.Get("Location"), response.Header.Get("Set-Cookie"); to != "/console/sign-in?error="+code || !strings.HasPrefix(set, cookie+";") {
			t.Errorf("%s leads to %s with %s", query, to, set)
		}
	}
	log := s.Log.String()
	for _, said := range []string{"openid connect sign-in failed", "server_error", "invalid_grant"} {
		if !strings.Contains(log, said) {
			t.Errorf("%q is not in the log:\n%s", said, log)
		}
	}

	cookie, state := p.Begin(t, s, "")
	response := s.Send(t, "GET", "/auth/oauth2/callback/oidc?code=ann&state="+state, "", "Cookie", cookie)
	defer response.Body.Close()
	var session string
	for _, c := range response.Cookies() {
		if c.Name == "intents.session" {
			session = c.Value
		}
	}
	got, _ := s.Call(t, "GET", "/auth/get-session", "", "Cookie", "intents.session="+session).Body.(map[string]any)
	if user, _ := got["user"].(map[string]any); user["email"] != "ann@example.com" || user["name"] != "ann" {
		t.Errorf("signed in as %v", got)
	}
	if log := s.Log.String(); strings.Contains(log, state) || strings.Contains(log, session) || strings.Contains(log, strings.TrimPrefix(cookie, "intents.oidc=")) {
		t.Errorf("a secret is in the log:\n%s", log)
	}
	if accounts := pgtest.LookUp[string](t, s.Store, `SELECT string_agg(email, ' ' ORDER BY email) FROM accounts`); accounts != "ann@example.com bob@example.com" {
		t.Errorf("accounts %s", accounts)
	}

	shut := webtest.StartOn(t, s.Store, p.Settings, func(c *webtest.Settings) { c.Identity.SignUpOpen = false })
	cookie, state = p.Begin(t, shut, "")
	webtest.Same(t, "sign-up closed", failed("sign_up_closed"), shut.Call(t, "GET", "/auth/oauth2/callback/oidc?code=carol&state="+state, "", "Cookie", cookie))
	few := webtest.StartOn(t, s.Store, p.Settings, func(c *webtest.Settings) { c.Identity.Limits.SignInPerIP = 1 })
	cookie, state = p.Begin(t, few, "")
	if again := few.Call(t, "GET", "/auth/oauth2/callback/oidc?code=ann&state="+state, "", "Cookie", cookie); again.Status != 429 || again.Header["Set-Cookie"] != "" {
		t.Errorf("too often: %+v", again)
	}
}

// Each tab of a browser has its own flow: five of them all sign in, a sixth ends the oldest, and the cookie stays one that browsers keep.
func TestFinishOIDC_Tabs(t *testing.T) {
	t.Parallel()
	p := webtest.StartOpenIDProvider(t)
	s := webtest.Start(t, p.Settings)
	type tab struct{ state, nonce, page string }
	for name, c := range map[string]struct {
		page    string // of 3 bytes or more, which differs by tab
		tabs    int
		expired int // how many of the oldest
	}{
		"two":                {"/console/", 2, 0},
		"five":               {"/console/", 5, 0},
		"six":                {"/console/", 6, 1},
		"long pages":         {"/" + strings.Repeat("p", 1000), 3, 1},
		"the oldest of many": {"/console/", 12, 7},
	} {
		var cookie string
		var tabs []tab
		for i := range c.tabs {
			page := fmt.Sprintf("%s%d", c.page, i)
			var state string
			cookie, state = p.Begin(t, s, page, "Cookie", cookie)
			tabs = append(tabs, tab{state, p.Nonce, page})
			if len(cookie) > 3600 {
				t.Errorf("%s: the cookie has %d bytes", name, len(cookie))
			}
		}
		for i, tab := range tabs {
			p.Nonce = tab.nonce
			response := s.Send(t, "GET", "/auth/oauth2/callback/oidc?code=ann&state="+tab.state, "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site")
			webtest.ReadAll(t, response)
			signedIn := false
			for _, set := range response.Cookies() {
				switch set.Name {
				case "intents.session":
					signedIn = true
				case "intents.oidc":
					cookie = set.Name + "=" + set.Value
				}
			}
			leadsTo := tab.page
			if i < c.expired {
				leadsTo = "/console/sign-in?error=flow_expired"
			}
			if got := response.Header.Get("Location"); got != leadsTo || signedIn != (i >= c.expired) {
				t.Errorf("%s: tab %d leads to %s, signed in: %t", name, i, got, signedIn)
			}
		}
		if cookie != "intents.oidc=" {
			t.Errorf("%s: flows that have ended stay: %s", name, cookie)
		}
	}
}
