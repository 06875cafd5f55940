package e2e_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/freeport"
)

// People of a real OpenID Connect provider, which comes up after core, sign in and link it in a browser, through the provider's own pages.
func TestOpenIDConnect(t *testing.T) {
	journey(t)
	t.Parallel()
	project, browser := newNodeProject(t), chromium(t)
	issuer := "http://" + freeport.Address(t)
	s, _ := startStack(t, stack.Config{CoreEnv: []string{
		"CORE_OIDC_ISSUER=" + issuer, "CORE_OIDC_CLIENT_ID=intents", "CORE_OIDC_CLIENT_SECRET=a secret: 100%",
	}})
	anyone := rawClient(t, s.Env().GatewayURL, "")
	start := func() system.Answer {
		return anyone.Do(http.MethodPost, "/auth/sign-in/oauth2", map[string]any{"providerId": "oidc"})
	}
	refused(t, start(), 503, "SERVICE_UNAVAILABLE")
	system.StartProcess(t, embedded.Command{Path: "node", Args: []string{"oidc-provider.mjs"}, Dir: project.dir, Env: append(project.env,
		"ISSUER="+issuer, "CLIENT_ID=intents", "CLIENT_SECRET=a secret: 100%", "REDIRECT_URI="+anyone.Base+"/auth/oauth2/callback/oidc")})
	asynctest.Succeeds(t, func() error { // core asks again within 30 seconds
		if a := start(); a.Status != http.StatusOK {
			return fmt.Errorf("the provider is there, and sign-in answers %d", a.Status)
		}
		return nil
	})
	const signIn = `a[href^="/console/sign-in/openid-connect"]`
	// arrive goes through the provider's pages as somebody, from the page that leads to it.
	newTab := func() (b *tab, arrive func(login, link string)) {
		b = openTab(browser, t)
		b.base, b.allowed = anyone.Base, issuer
		return b, func(login, link string) {
			t.Helper()
			if link == signIn {
				b.do(chromedp.WaitVisible(chromedp.CSS("[data-passkey] button"))) // a script shows it above the link, which moves
			}
			b.click(link)
			b.fill(`input[name="login"]`, login, `input[name="password"]`, "any")
			b.click(`button[type="submit"]`)
			b.click(`button[type="submit"]`) // that the service may know who it is
		}
	}
	ann, arrive := newTab()
	ann.open("/console/account") // where the sign-in shall lead
	ann.inspect("sign-in-oidc")
	arrive("ann", signIn)
	if got := ann.path(); got != "/console/account" {
		t.Errorf("the sign-in leads to %s", got)
	}
	ann.says("ann@example.com", "none: you sign in another way")
	again, arrive := newTab()
	again.open("/console/sign-in")
	arrive("ann", signIn)
	again.open("/console/account", "ann@example.com") // the same account: its address is taken

	t.Log("somebody else links it to an account with a password")
	dora := newPerson(t, anyone.Base)
	b, arrive := newTab()
	b.open("/console/sign-in")
	b.signIn(dora.email, password)
	b.open("/console/account/link")
	b.click(`form[action$="/openid-connect"] button`)
	arrive("erin", `a[href^="`+issuer+`"]`)
	b.says("It is linked: you can sign in with it from now on.")
	erin, arrive := newTab()
	erin.open("/console/sign-in")
	arrive("erin", signIn)
	erin.open("/console/account", dora.email)
}
