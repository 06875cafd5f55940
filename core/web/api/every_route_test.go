package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/identity/passkeytest"
	"intents.internal/core/pgtest"
	"intents.internal/core/rpc/rpctest"
	"intents.internal/core/web/webtest"
	"intents.internal/core/webhooks"
)

// The tests of this file call every route once with success and compare whole bodies with the examples.

func TestEveryRoute_Registry(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := webtest.Keyed(uuid.New(), "test")
	s.example(t, "of one chain", "GET", "/v2/tokens?chain-id=eip155:84532", "", key...)
	s.example(t, "chains", "GET", "/v2/chains", "", key...)
	s.example(t, "days", "GET", "/v2/usage?granularity=day", "", key...)
}

func TestEveryRoute_Transfers(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(payable())) })
	owner := uuid.New()
	key := webtest.Keyed(owner, "test")
	_, sent, _ := s.create(t, webtest.TransferBody, key...)
	_, swap, _ := s.create(t, webtest.SwapBody, key...)
	s.example(t, "a swap that nobody has sent", "GET", swap, "", key...)
	s.example(t, "a swap", "GET", swap+"/preflight", "", key...)
	s.example(t, "a hash", "POST", sent+"/transaction", reportOf(txHash("a")), key...)
	s.example(t, "a swap", "PATCH", swap, `{"reference":"inv-43","labels":{"order":"43","customer":null}}`, key...)
	_, minting := keyOf(t, s)
	_, minted, _ := s.create(t, webtest.TransferBody, minting...)
	s.example(t, "an hour", "POST", minted+"/client-token", `{"expiresIn":3600}`, minting...)
	s.example(t, "a page and a developer's", "PATCH", "/v2/origins", `{"origins":["https://app.example.com","http://localhost:3000"]}`, minting...)
	s.example(t, "two", "GET", "/v2/origins", "", minting...)
	s.example(t, "a swap", "POST", swap+"/cancel", "", key...)
	_, simulated, _ := s.create(t, webtest.SwapBody, key...)
	s.example(t, "a swap", "POST", simulated+"/simulate", `{"status":"filled"}`, key...)
	s.example(t, "two intents", "GET", "/v2/transfers?limit=2", "", key...)
	s.example(t, "an event", "GET", "/v2/events?limit=1", "", key...)
	s.example(t, "a swap that was cancelled", "GET", swap+"/events", "", key...)
}

func TestEveryRoute_Refund(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *webtest.Settings) { c.Intents.Chains = nodes(t, sepolia, rpctest.NewNode(deposited())) })
	owner := uuid.New()
	location := s.createOpen(t, owner)
	s.example(t, "a bridge that nobody has filled", "GET", location, "", webtest.Keyed(owner, "test")...)
	s.example(t, "a bridge", "GET", location+"/refund", "", webtest.Keyed(owner, "live")...)
}

func TestEveryRoute_Webhooks(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks(t))
	_, key := newOwner(t, s)
	s.example(t, "some events", "POST", "/v2/webhooks", `{"url":"https://example.com/hooks","types":["transfer.*"],"description":"Books"}`, key...)
	path := "/v2/webhooks/" + pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM webhooks`).String()
	s.example(t, "a webhook", "GET", path, "", key...)
	s.example(t, "webhooks", "GET", "/v2/webhooks", "", key...)
	s.example(t, "all events", "PATCH", path, `{"types":null,"description":null}`, key...)
	s.example(t, "a day's grace", "POST", path+"/rotate-secret", `{"gracePeriod":86400}`, key...)
	s.example(t, "a test", "POST", path+"/test", "", key...)
	s.example(t, "deliveries", "GET", path+"/deliveries", "", key...)
	event := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT event_id FROM deliveries`)
	pgtest.Exec(t, s.Store, `INSERT INTO delivery_attempts SELECT webhook_id, event_id, now(), 184, 500, $1, 'no database' FROM deliveries`,
		webhooks.OtherStatus.Text())
	s.example(t, "a failed attempt", "GET", path+"/deliveries/"+feed.ID(event).String(), "", key...)
	s.example(t, "a sample", "POST", path+"/test", `{"type":"transfer.filled"}`, key...)
}

func TestEveryRoute_Accounts(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.example(t, "an account", "POST", "/auth/sign-up/email", `{"name":"Ann","email":"ann@example.com","password":"`+webtest.Password+`"}`)
	s.example(t, "an account", "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+webtest.Password+`"}`)
	ann, other := signIn(t, s), signIn(t, s)
	s.example(t, "signed in", "GET", "/auth/get-session", "", ann...)
	s.example(t, "signed out", "GET", "/auth/get-session", "")
	s.example(t, "a session", "POST", "/auth/revoke-session", `{"token":"`+sessionID(t, s, other)+`"}`, ann...)
	s.example(t, "all others", "POST", "/auth/revoke-other-sessions", `{}`, ann...)
	s.example(t, "one session", "GET", "/auth/list-sessions", "", ann...)
	s.example(t, "the password", "GET", "/auth/list-accounts", "", ann...)
	pgtest.Exec(t, s.Store, `INSERT INTO identities SELECT 'eip155', $1, id, now() FROM accounts`, strings.ToLower(webtest.Alice))
	s.example(t, "a wallet", "POST", "/auth/unlink-account", `{"providerId":"siwe"}`, ann...)
	s.example(t, "all sessions", "POST", "/auth/revoke-sessions", `{}`, ann...)
	s.example(t, "a password", "POST", "/auth/change-password", changePassword(webtest.Password, newPassword), signIn(t, s)...)
	s.example(t, "signed in", "POST", "/auth/sign-out", `{}`, signUp(t, s, "bob@example.com")...)
	s.example(t, "an account", "POST", "/auth/delete-user", `{"password":"`+webtest.Password+`"}`, signUp(t, s, "carol@example.com")...)
}

func TestEveryRoute_Mail(t *testing.T) {
	t.Parallel()
	s := start(t, mailing)
	ann := signUp(t, s, "ann@example.com")
	s.example(t, "an address", "POST", "/auth/request-password-reset", `{"email":"ann@example.com","redirectTo":"/console"}`)
	s.example(t, "an address", "POST", "/auth/send-verification-email", `{"email":"bob@example.com"}`)
	s.example(t, "an address", "POST", "/auth/change-email", `{"newEmail":"ann@example.org"}`, ann...)
	s.Call(t, "POST", "/auth/sign-up/email", `{"name":"Bob","email":"bob@example.com","password":"`+webtest.Password+`"}`)
	s.example(t, "a sign-up", "GET", "/auth/verify-email?token="+insertLink(t, s, "bob@example.com", identity.Link{Purpose: account.VerifyEmail}), "")
	owner, err := s.Store.Identities.AccountByEmail(t.Context(), "ann@example.com")
	if err == nil {
		err = s.Store.Identities.InsertResetToken(t.Context(), owner, account.HashToken("EXAMPLE"), time.Now().Add(time.Hour), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, s.Store, `INSERT INTO identities SELECT 'https://id.example', 'ann', id, now() FROM accounts WHERE email = 'ann@example.com'`)
	s.example(t, "a password alone", "POST", "/auth/reset-password", `{"token":"EXAMPLE","newPassword":"`+newPassword+`","unlinkAccounts":true}`)
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM identities`); n != 0 {
		t.Errorf("%d identities are left", n)
	}
}

func TestEveryRoute_Wallets(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	s := start(t, p.settings)
	wallet := walletOf(t)
	const address = `,"walletAddress":"` + webtest.Alice + `"`
	ann := signUp(t, s, "ann@example.com")
	s.example(t, "a nonce", "POST", "/auth/siwe/nonce", `{"walletAddress":"`+webtest.Alice+`","chainId":10}`)
	s.example(t, "a wallet", "POST", "/auth/siwe/link", signedBody(t, wallet, walletMessage(walletNonce(t, s)), address), ann...)
	s.example(t, "a wallet", "POST", "/auth/siwe/verify", signedBody(t, wallet, walletMessage(walletNonce(t, s)), address))
	s.example(t, "a page to return to", "POST", "/auth/sign-in/oauth2", `{"providerId":"oidc","callbackURL":"/console"}`)
	s.example(t, "a page to return to", "POST", "/auth/oauth2/link", `{"providerId":"oidc","callbackURL":"/console/account"}`, ann...)
}

func TestEveryRoute_Keys(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	s.example(t, "a test key", "POST", "/auth/api-key/create", `{"name":"ci"}`, ann...)
	s.example(t, "a live key with restrictions", "POST", "/auth/api-key/create",
		`{"name":"books","environment":"live","expiresIn":86400,"scopes":["intents:read"],"networks":["203.0.113.0/24"]}`, ann...)
	s.example(t, "a page", "GET", "/auth/api-key/list?limit=1&sortBy=name", "", ann...)
	id := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM api_keys WHERE name = 'ci'`).String()
	s.example(t, "a key", "GET", "/auth/api-key/get?id="+id, "", ann...)
	s.example(t, "disable", "POST", "/auth/api-key/update", `{"keyId":"`+id+`","enabled":false}`, ann...)
	s.example(t, "an hour's grace", "POST", "/auth/api-key/rotate", `{"keyId":"`+id+`","gracePeriod":3600}`, ann...)
	s.example(t, "a key", "POST", "/auth/api-key/delete", `{"keyId":"`+id+`"}`, ann...)
}

func TestEveryRoute_Members(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := signUp(t, s, "ann@example.com"), signUp(t, s, "bob@example.com")
	const on = "/auth/organization/"
	s.example(t, "a shared account", "POST", on+"create", `{"name":"Shop"}`, ann...)
	shop := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM accounts WHERE shared`).String()
	s.example(t, "two accounts", "GET", on+"list", "", ann...)
	s.example(t, "the own account", "POST", on+"set-active", `{"organizationId":null}`, ann...)
	s.example(t, "a shared account", "POST", on+"set-active", `{"organizationSlug":"`+shop+`"}`, ann...)
	invite := func() string {
		pgtest.Exec(t, s.Store, `UPDATE invitations SET token_hash = sha256('EXAMPLE')`)
		return `{"invitationId":"EXAMPLE"}`
	}
	invitation := func() string {
		return pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM invitations ORDER BY created_at DESC LIMIT 1`).String()
	}
	s.example(t, "where no mail is sent", "POST", on+"invite-member", `{"email":"Bob@example.com","role":"viewer"}`, ann...)
	s.example(t, "one invitation", "GET", on+"list-invitations", "", ann...)
	s.example(t, "an invitation", "POST", on+"cancel-invitation", `{"invitationId":"`+invitation()+`"}`, ann...)
	s.Call(t, "POST", on+"invite-member", `{"email":"bob@example.com","role":"viewer"}`, ann...)
	s.example(t, "an invitation", "POST", on+"reject-invitation", invite(), bob...)
	pgtest.Exec(t, s.Store, `DELETE FROM invitations`)
	s.Call(t, "POST", on+"invite-member", `{"email":"bob@example.com","role":"viewer"}`, ann...)
	request := invite()
	s.example(t, "an invitation", "GET", on+"get-invitation?id=EXAMPLE", "", bob...)
	s.example(t, "an invitation", "POST", on+"accept-invitation", request, bob...)
	s.example(t, "a member", "GET", on+"get-active-member", "", bob...)
	s.example(t, "a page", "GET", on+"list-members?limit=1&offset=1", "", ann...)
	s.example(t, "a shared account", "GET", on+"get-full-organization", "", ann...)
	s.example(t, "a role", "POST", on+"update-member-role", `{"memberId":"`+idOf(t, s, "bob@example.com")+`","role":"developer"}`, ann...)
	s.example(t, "a shared account", "POST", on+"leave", `{"organizationId":"`+shop+`"}`, bob...)
	pgtest.Exec(t, s.Store, `INSERT INTO members VALUES ($1, $2, 'viewer', now())`, shop, idOf(t, s, "bob@example.com"))
	s.example(t, "an address", "POST", on+"remove-member", `{"memberIdOrEmail":"bob@example.com"}`, ann...)
	s.example(t, "a name", "POST", on+"update", `{"organizationId":"`+shop+`","data":{"name":" Kiosk "}}`, ann...)
	s.example(t, "a shared account", "POST", on+"delete", `{"organizationId":"`+shop+`"}`, ann...)
}

func TestEveryRoute_Passkeys(t *testing.T) {
	t.Parallel()
	s := start(t, withPasskeys)
	ann := s.browse(t, signUp(t, s, "ann@example.com")...)
	device := passkeytest.NewEd25519(t, passkeySite, passkeyHost)
	ann.adds(device)
	s.example(t, "another passkey", "GET", onPasskey+"generate-register-options?name=laptop", "", ann.header()...)
	second := registration(passkeytest.NewEd25519(t, passkeySite, passkeyHost).Register(t, ann.options("generate-register-options")), "phone")
	s.example(t, "a passkey", "POST", onPasskey+"verify-registration", second, ann.header()...)
	s.example(t, "two passkeys", "GET", onPasskey+"list-user-passkeys", "", ann.header()...)
	s.example(t, "a name", "POST", onPasskey+"update-passkey", `{"id":"`+passkeyID(t, s)+`","name":"desk"}`, ann.header()...)
	s.example(t, "signed out", "GET", onPasskey+"generate-authenticate-options", "")
	nobody := s.browse(t)
	response := authentication(device.Authenticate(t, nobody.options("generate-authenticate-options")))
	s.example(t, "a passkey", "POST", onPasskey+"verify-authentication", response, nobody.header()...)
	s.example(t, "a passkey", "POST", onPasskey+"delete-passkey", `{"id":"`+passkeyID(t, s)+`"}`, ann.header()...)
}

// Every documented operation that answers with a body has an example, so that a new one cannot be forgotten.
func TestEveryRoute_Examples(t *testing.T) {
	t.Parallel()
	operations, err := webtest.DocumentedOperations()
	if err != nil {
		t.Fatal(err)
	}
	recordedExamples.mu.Lock()
	defer recordedExamples.mu.Unlock()
	if err := recordedExamples.load(); err != nil {
		t.Fatal(err)
	}
	without := map[string]bool{ // no JSON body in their success
		"getHealth": true, "getHealthV2": true, "getDocs": true, "getOpenApi": true, "getOpenApiV2": true, "finishOpenIDConnect": true,
		"deleteWebhook": true, "retryDelivery": true, "replayWebhook": true,
	}
	for route, operation := range operations {
		id := operation.OperationID
		if (recordedExamples.recorded[id] == nil) != without[id] {
			t.Errorf("%s, %s: has an example is %v", route, id, without[id])
		}
	}
}
