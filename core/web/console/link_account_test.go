package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"intents.internal/core/identity"
	"intents.internal/core/pgtest"
)

const linkedWallet = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

// withProvider gives a site a provider that nobody gets to: its pages are not the site's.
func withProvider(t *testing.T) (issuer string, change func(*identity.Config)) {
	t.Helper()
	described := &oidctest.Server{}
	server := httptest.NewServer(described)
	t.Cleanup(server.Close)
	described.SetIssuer(server.URL)
	return server.URL, func(c *identity.Config) {
		c.OIDC = identity.NewOIDC(identity.OIDCConfig{Issuer: server.URL, ClientID: "intents", ClientSecret: "secret", Name: "Example"}, c.PublicURL)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c.OIDC.Discover(ctx, c.Log)
	}
}

func TestShowAccount_WaysToSignIn(t *testing.T) {
	t.Parallel()
	issuer, provider := withProvider(t)
	s := start(t, provider)
	ann := s.signedUp(t, "ann@example.com")
	other := s.session(t, s.ann(t), time.Now())
	ann.get("/console/account").is(http.StatusOK, "Ways to sign in", "Only your password.")
	pgtest.Exec(t, s.store, `INSERT INTO identities (issuer, subject, account_id, created_at) SELECT v.*, id, now() FROM accounts, (VALUES
		('eip155', $1), ('eip155:8453', $1), ($2, 'ann <b>'), ('https://old.example', 'ann')) v`, strings.ToLower(linkedWallet), issuer)
	ann.get("/console/account").is(http.StatusOK, "Wallet", linkedWallet, "Smart account on eip155:8453 Not available", "Example", "ann <b>", "https://old.example Not available")

	query := url.Values{"issuer": {"eip155"}, "subject": {strings.ToLower(linkedWallet)}}
	page := unlinkPath + "?" + query.Encode()
	ann.get(page).is(http.StatusOK, "Unlink this way to sign in?", linkedWallet, "all other sessions end")
	ann.get(unlinkPath+"?issuer=eip155&subject=0x1").is(http.StatusBadRequest, "Your account is not signed in to this way.")
	ann.post(unlinkPath, "issuer", "eip155", "subject", strings.ToLower(linkedWallet)).leadsTo("/console/account?done=unlinked")
	ann.get("/console/account?done=unlinked").is(http.StatusOK, "It is unlinked, and all other sessions are ended.")
	other.get("/console/account").leadsTo("/console/sign-in?done=ended&next=%2Fconsole%2Faccount")
	ann.get("/console/audit").is(http.StatusOK, "Way to sign in unlinked", "wallet "+linkedWallet+"; all other sessions ended")

	t.Log("a session that is not fresh needs the password")
	pgtest.Exec(t, s.store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	form := []string{"issuer", issuer, "subject", "ann <b>"}
	ann.get(unlinkPath+"?"+url.Values{"issuer": {issuer}, "subject": {"ann <b>"}}.Encode()).is(http.StatusOK, "Your password, to confirm")
	ann.post(unlinkPath, append(form, "password", "")...).is(http.StatusForbidden).alerts("You signed in more than ten minutes ago.")
	ann.post(unlinkPath, append(form, "password", "wrong")...).is(http.StatusBadRequest).tied("password", "The password is wrong.")
	ann.post(unlinkPath, append(form, "password", password)...).leadsTo("/console/account?done=unlinked")

	t.Log("an account without a password must sign in again, and keeps its last way in")
	pgtest.Exec(t, s.store, `UPDATE accounts SET password_hash = ''`)
	last := []string{"issuer", "eip155:8453", "subject", strings.ToLower(linkedWallet)}
	ann.get(unlinkPath+"?issuer=eip155:8453&subject="+strings.ToLower(linkedWallet)).is(http.StatusOK, "You have no password, so sign out, sign in again the same way, and do this within ten minutes.")
	ann.post(unlinkPath, last...).is(http.StatusForbidden).alerts("You signed in more than ten minutes ago.")
	pgtest.Exec(t, s.store, `UPDATE sessions SET created_at = now()`)
	ann.post(unlinkPath, last...).is(http.StatusBadRequest).alerts("This is the only way to sign in to your account.")
}

const unlinkPath = "/console/account/unlink"

func TestLinkAccount(t *testing.T) {
	t.Parallel()
	issuer, provider := withProvider(t)
	s := start(t, provider)
	ann := s.signedUp(t, "ann@example.com")
	const page, form = "/console/account/link", "/console/account/link/openid-connect"
	ann.get(page).is(http.StatusOK, "Link a way to sign in", "Link Example")
	on := ann.post(form).is(http.StatusOK, "Continue at Example", "your account there can sign in to this account")
	if !strings.Contains(on.body, `href="`+issuer+"/auth?") || !strings.HasPrefix(on.header.Get("Set-Cookie"), "intents.oidc=") {
		t.Errorf("the page does not lead to the provider: %v\n%s", on.header, on.body)
	}
	if a := ann.get(form); a.status != http.StatusSeeOther { // another site can have a browser open it
		t.Errorf("a link starts a flow: %d", a.status)
	}
	if a := ann.send(http.MethodPost, form, nil, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"); a.status != http.StatusForbidden {
		t.Errorf("a form of another site starts a flow: %d", a.status)
	}
	for code, says := range map[string]string{
		"oidc_denied": "nothing was linked", "flow_expired": "begun in another session", "identity_taken": "Another account signs in this way",
		"too_many_identities": "Unlink one first", "oidc_failed": "did not confirm who you are",
	} {
		ann.get("/console/account?error=" + code).is(http.StatusOK).alerts(says)
	}
	ann.get("/console/account?done=linked").is(http.StatusOK, "It is linked")

	message := ann.post("/console/sign-in/wallet-message", "address", linkedWallet, "chain", "1", "purpose", "link")
	if message.status != http.StatusOK || !strings.Contains(message.body, "Link this wallet to your account") {
		t.Errorf("the wallet's message: %d %s", message.status, message.body)
	}
	pgtest.Exec(t, s.store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	ann.get(page).is(http.StatusOK, "Your password, to confirm")
	ann.post(form).is(http.StatusForbidden).alerts("You signed in more than ten minutes ago.")
	ann.post(form, "password", "wrong").is(http.StatusBadRequest).tied("password", "The password is wrong.")
	ann.post(form, "password", password).is(http.StatusOK, "Continue at Example")
	pgtest.Exec(t, s.store, `UPDATE accounts SET password_hash = ''`)
	ann.get(page).is(http.StatusOK, "You have no password, so sign out, sign in again the same way, and do this within ten minutes.")
}

// Without a provider only wallets can be linked.
func TestLinkAccount_WithoutProvider(t *testing.T) {
	t.Parallel()
	ann := start(t).signedUp(t, "ann@example.com")
	if a := ann.get("/console/account/link").is(http.StatusOK, "Wallets of this browser"); strings.Contains(a.body, "openid-connect") {
		t.Error("a provider is offered where there is none")
	}
	ann.post("/console/account/link/openid-connect").is(http.StatusNotFound)
}
