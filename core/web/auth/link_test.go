package auth_test

import (
	"encoding/json"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// accountIDs are the account ids of GET /auth/list-accounts, by the provider.
func accountIDs(t *testing.T, s *webtest.Service, who []string) map[string]string {
	t.Helper()
	response := s.Send(t, "GET", "/auth/list-accounts", "", who...)
	var ways []struct{ ProviderID, AccountID string }
	if text := webtest.ReadAll(t, response); json.Unmarshal([]byte(text), &ways) != nil {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	ids := map[string]string{}
	for _, way := range ways {
		ids[way.ProviderID] = strings.TrimPrefix(ids[way.ProviderID]+" "+way.AccountID, " ")
	}
	return ids
}

func TestListAccounts(t *testing.T) {
	t.Parallel()
	p := webtest.StartOpenIDProvider(t)
	s := webtest.Start(t, p.Settings)
	ann := s.SignUp(t, "ann@example.com")
	way := func(provider, accountID string) string {
		return `{"id":"` + provider + ":" + accountID + `","providerId":"` + provider + `","accountId":"` + accountID + `","userId":"<id>","scopes":[],"createdAt":"<time>","updatedAt":"<time>"}`
	}
	webtest.Same(t, "signed out", webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first."), s.Call(t, "GET", "/auth/list-accounts", "", signedOut...))
	id := accountIDs(t, s, ann)["credential"]
	got := s.Call(t, "GET", "/auth/list-accounts", "", ann...)
	if first, _ := got.Body.([]any)[0].(map[string]any); first["id"] != "credential:"+id || len(got.Body.([]any)) != 1 {
		t.Errorf("the password alone: %+v", got)
	}
	pgtest.Exec(t, s.Store, `UPDATE accounts SET password_hash = ''`)
	webtest.Same(t, "nothing", webtest.Want(t, 200, `[]`, "Cache-Control", "no-store"), s.Call(t, "GET", "/auth/list-accounts", "", ann...))
	pgtest.Exec(t, s.Store, `INSERT INTO identities (issuer, subject, account_id, created_at)
		SELECT v.*, id, now() + row_number() OVER () * interval '1 s' FROM accounts, (VALUES
		('eip155', $1), ('eip155:8453', $1), ($2, 'ann'), ('https://old.example', 'ann')) v`, strings.ToLower(webtest.Alice), p.URL)
	webtest.Same(t, "identities", webtest.Want(t, 200, "["+strings.Join([]string{
		way("siwe", webtest.Alice), way("siwe", webtest.Alice+":8453"), way("oidc", "ann"), way("https://old.example", "ann"),
	}, ",")+"]", "Cache-Control", "no-store"), s.Call(t, "GET", "/auth/list-accounts", "", ann...))
}

func TestLinkSIWE(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann, bob := s.SignUp(t, "ann@example.com"), s.SignUp(t, "bob@example.com")
	wallet := webtest.Wallet(t)
	const address = `,"walletAddress":"` + webtest.Alice + `"`
	link := func(rest string, who ...string) webtest.Answer {
		return s.Call(t, "POST", "/auth/siwe/link", webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address+rest), who...)
	}
	done := webtest.Want(t, 200, `{"status":true}`)
	webtest.Same(t, "signed out", webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first."), link("", signedOut...))
	webtest.Same(t, "another chain", webtest.Refused(t, 401, "UNAUTHORIZED_SIWE_MESSAGE_MISMATCH", "The message is for another site, address or chain; have the wallet sign one that was made here."), link(`,"chainId":1`, ann...))
	webtest.Same(t, "an unknown field", webtest.Invalid(t, "/email", "is not a known field"), link(`,"email":"ann@example.com"`, ann...))
	pgtest.Exec(t, s.Store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	webtest.Same(t, "signed in long ago", webtest.Refused(t, 403, "SESSION_NOT_FRESH", "You signed in more than ten minutes ago. Repeat this with your password in the member password."), link("", ann...))
	webtest.Same(t, "a wrong password", webtest.Refused(t, 400, "INVALID_PASSWORD", "Invalid password."), link(`,"password":"wrong horse battery"`, ann...))
	webtest.Same(t, "the password", done, link(`,"password":"`+webtest.Password+`"`, ann...))
	webtest.Same(t, "again", done, link(`,"password":"`+webtest.Password+`"`, ann...))
	webtest.Same(t, "another's", webtest.Refused(t, 409, "SOCIAL_ACCOUNT_ALREADY_LINKED", "Another account signs in this way; unlink it there first."), link(`,"password":"`+webtest.Password+`"`, bob...))

	response := s.Send(t, "POST", "/auth/siwe/verify", webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address))
	webtest.ReadAll(t, response)
	cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
	got := s.Call(t, "GET", "/auth/get-session", "", "Cookie", cookie)
	if user, _ := got.Body.(map[string]any)["user"].(map[string]any); user["email"] != "ann@example.com" {
		t.Errorf("the wallet signs in to %v", user)
	}
}

func TestUnlinkAccount(t *testing.T) {
	t.Parallel()
	p := webtest.StartOpenIDProvider(t)
	s := webtest.Start(t, p.Settings)
	ann := s.SignUp(t, "ann@example.com")
	pgtest.Exec(t, s.Store, `INSERT INTO identities (issuer, subject, account_id, created_at) SELECT v.*, id, now() FROM accounts, (VALUES
		('eip155', $1), ('eip155:8453', $1), ($2, 'ann')) v`, strings.ToLower(webtest.Alice), p.URL)
	unlink := func(request string, who ...string) webtest.Answer {
		return s.Call(t, "POST", "/auth/unlink-account", request, who...)
	}
	done, absent := webtest.Want(t, 200, `{"status":true}`), webtest.Refused(t, 400, "ACCOUNT_NOT_FOUND", "The account is not signed in to this way; see /auth/list-accounts.")
	webtest.Same(t, "signed out", webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first."), unlink(`{"providerId":"oidc"}`, signedOut...))
	webtest.Same(t, "the password", webtest.Invalid(t, "/providerId", "must not be the password's, which stays; change it instead"), unlink(`{"providerId":"credential"}`, ann...))
	webtest.Same(t, "which wallet", webtest.Invalid(t, "/accountId", "must say which, as the account has several of this provider; see /auth/list-accounts"), unlink(`{"providerId":"siwe"}`, ann...))
	webtest.Same(t, "another provider", absent, unlink(`{"providerId":"google"}`, ann...))
	pgtest.Exec(t, s.Store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	webtest.Same(t, "signed in long ago", webtest.Refused(t, 403, "SESSION_NOT_FRESH", "You signed in more than ten minutes ago. Repeat this with your password in the member password."), unlink(`{"providerId":"oidc"}`, ann...))
	webtest.Same(t, "a wrong password", webtest.Refused(t, 400, "INVALID_PASSWORD", "Invalid password."), unlink(`{"providerId":"oidc","password":"wrong horse battery"}`, ann...))
	webtest.Same(t, "the password of an old session", done, unlink(`{"providerId":"oidc","password":"`+webtest.Password+`"}`, ann...))
	pgtest.Exec(t, s.Store, `UPDATE sessions SET created_at = now()`)
	webtest.Same(t, "a wallet in lower case", done, unlink(`{"providerId":"siwe","accountId":"`+strings.ToLower(webtest.Alice)+`"}`, ann...))
	if left := accountIDs(t, s, ann); left["siwe"] != webtest.Alice+":8453" || left["oidc"] != "" {
		t.Errorf("left: %v", left)
	}
	pgtest.Exec(t, s.Store, `UPDATE accounts SET password_hash = ''`)
	webtest.Same(t, "the last", webtest.Refused(t, 400, "FAILED_TO_UNLINK_LAST_ACCOUNT", "Nobody could sign in to the account any more; link another way or set a password first."),
		unlink(`{"providerId":"siwe"}`, ann...))
}

// The flow of a link ends at the account page of the session that began it, and nowhere else.
func TestLinkOIDC(t *testing.T) {
	t.Parallel()
	p := webtest.StartOpenIDProvider(t)
	s := webtest.Start(t, p.Settings)
	ann, bob := s.SignUp(t, "ann@example.com"), s.SignUp(t, "bob@example.com")
	back := func(who []string, flow, query string) string {
		t.Helper()
		response := s.Send(t, "GET", "/auth/oauth2/callback/oidc?"+query, "", "Cookie", who[1]+"; "+flow, "Sec-Fetch-Site", "cross-site")
		webtest.ReadAll(t, response)
		if strings.Contains(strings.Join(response.Header.Values("Set-Cookie"), " "), "intents.session=") {
			t.Errorf("%s: the session was changed", query)
		}
		return response.Header.Get("Location")
	}
	const path, request = "/auth/oauth2/link", `{"providerId":"oidc","callbackURL":"/console/account?mine"}`
	webtest.Same(t, "signed out", webtest.Refused(t, 401, "UNAUTHORIZED", "Sign in first."), s.Call(t, "POST", path, request, signedOut...))
	webtest.Same(t, "another provider", webtest.Invalid(t, "/providerId", `must be "oidc"`), s.Call(t, "POST", path, `{"providerId":"google"}`, ann...))
	webtest.Same(t, "another site", webtest.Invalid(t, "/callbackURL", "must be a path on this site, such as /console"),
		s.Call(t, "POST", path, `{"providerId":"oidc","callbackURL":"https://evil.example/"}`, ann...))

	for _, c := range []struct {
		name    string
		who     []string
		query   string
		leadsTo string
	}{
		{"cancelled", ann, "error=access_denied&state=", "/console/account?error=oidc_denied"},
		{"refused", ann, "code=nobody&state=", "/console/account?error=oidc_failed"},
		{"signed out", signedOut, "code=ann&state=", "/console/account?error=flow_expired"},
		{"linked", ann, "code=ann&state=", "/console/account?mine"},
		{"linked again", ann, "code=ann&state=", "/console/account?mine"},
	} {
		flow, state := p.BeginLink(t, s, request, ann...)
		if got := back(c.who, flow, c.query+state); got != c.leadsTo {
			t.Errorf("%s: %s, want %s", c.name, got, c.leadsTo)
		}
	}
	if ids := accountIDs(t, s, ann); ids["oidc"] != "ann" {
		t.Errorf("linked: %v", ids)
	}
	flow, state := p.BeginLink(t, s, request, bob...)
	if got := back(bob, flow, "code=ann&state="+state); got != "/console/account?error=identity_taken" {
		t.Errorf("another's: %s", got)
	}
	flow, state = p.BeginLink(t, s, `{"providerId":"oidc"}`, bob...)
	if got := back(bob, flow, "code=bob&state="+state); got != "/console/account?done=linked" {
		t.Errorf("without a callback: %s", got)
	}
	if ids := accountIDs(t, s, bob); ids["oidc"] != "bob" {
		t.Errorf("linked: %v", ids)
	}
}
