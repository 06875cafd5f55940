package e2e_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
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

	early := expect[failure](t, newUserAgent(t, site).here.do(http.MethodPost, "/auth/sign-in/oauth2", map[string]any{"providerId": "oidc"}), 503)
	if early.Code != "SERVICE_UNAVAILABLE" {
		t.Errorf("before the provider is there: %+v", early)
	}
	project.env = append(project.env, "ISSUER="+issuer, "CLIENT_ID=intents", "CLIENT_SECRET=a secret: 100%", "REDIRECT_URI="+site+callbackPath)
	startOIDCProvider(t, project)
	eventually(t, func() error { // core asks again within 30 seconds
		response := newUserAgent(t, site).here.do(http.MethodPost, "/auth/sign-in/oauth2", map[string]any{"providerId": "oidc"})
		if response.Status != http.StatusOK {
			return fmt.Errorf("the provider is there, and sign-in answers %d", response.Status)
		}
		return nil
	})

	ann := newUserAgent(t, site)
	used := ann.goThrough("ann", "/console/keys?a=b")
	ann.arrives(used, "/console/keys?a=b")
	id := ann.signedInAs("ann@example.com", "ann of the provider")
	ann.arrives(used, signInPage+"flow_expired") // the sign-in is over

	again := newUserAgent(t, site)
	again.arrives(again.goThrough("ann", ""), "/console")
	if other := again.signedInAs("ann@example.com", "ann of the provider"); other != id {
		t.Error("the same person has two accounts")
	}

	t.Run("a link", func(t *testing.T) {
		v := newUserAgent(t, site)
		v.arrives(v.goThrough("dora", ""), "/console")
		id := v.signedInAs("dora@example.com", "dora of the provider")
		link := func(login, arrival string) {
			t.Helper()
			w := newUserAgent(t, site) // who is not signed in at the provider
			w.keep("intents.session", v.cookie("intents.session"))
			w.arrives(w.goThroughFrom("/auth/oauth2/link", login, ""), arrival)
		}
		link("ann", "/console/account?error=identity_taken")
		link("erin", "/console/account?done=linked")
		erin := newUserAgent(t, site)
		erin.arrives(erin.goThrough("erin", ""), "/console")
		if other := erin.signedInAs("dora@example.com", "dora of the provider"); other != id {
			t.Error("the person who was linked has another account")
		}
	})

	asIs := func(_ *userAgent, address string) string { return address }
	tampered := func(part int, value string) func(*userAgent, string) string {
		return func(v *userAgent, address string) string {
			parts := strings.Split(v.cookie("intents.oidc"), ".")
			parts[part] = value
			v.keep("intents.oidc", strings.Join(parts, "."))
			return address
		}
	}
	for name, c := range map[string]struct {
		login string
		// change is what happens before the browser goes to the address that the provider sends it to.
		change  func(v *userAgent, address string) string
		arrival string
		email   string // of the account it is signed in to, empty for none
	}{
		"an address that is not verified": {"unsure-demo", asIs, "/console", "@oidc.invalid"},
		"an address that is taken":        {"demo", asIs, signInPage + "email_taken", ""},
		"denied":                          {"", asIs, signInPage + "oidc_denied", ""},
		"another state":                   {"carol", func(_ *userAgent, address string) string { return strings.Replace(address, "state=", "state=x", 1) }, signInPage + "flow_expired", ""},
		"another nonce":                   {"carol", tampered(1, strings.Repeat("A", 26)), signInPage + "oidc_failed", ""},
		"another code verifier":           {"carol", tampered(2, strings.Repeat("A", 43)), signInPage + "oidc_failed", ""},
		"another browser": {"carol", func(v *userAgent, address string) string {
			v.keep("intents.oidc", "")
			return address
		}, signInPage + "flow_expired", ""},
		"a code that was used": {"carol", func(v *userAgent, address string) string {
			flow := v.cookie("intents.oidc")
			v.arrives(address, "/console")
			v.keep("intents.oidc", flow)
			v.keep("intents.session", "")
			return address
		}, signInPage + "oidc_failed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := newUserAgent(t, site)
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
