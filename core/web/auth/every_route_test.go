package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/identity/passkeytest"
	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// The tests of this file call every route once with success and compare whole bodies with the examples.

func TestEveryRoute_Accounts(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	s.Example(t, "an account", "POST", "/auth/sign-up/email", `{"name":"Ann","email":"ann@example.com","password":"`+webtest.Password+`"}`)
	s.Example(t, "an account", "POST", "/auth/sign-in/email", `{"email":"ann@example.com","password":"`+webtest.Password+`"}`)
	ann, other := s.SignIn(t), s.SignIn(t)
	s.Example(t, "signed in", "GET", "/auth/get-session", "", ann...)
	s.Example(t, "signed out", "GET", "/auth/get-session", "")
	s.Example(t, "a session", "POST", "/auth/revoke-session", `{"token":"`+s.SessionID(t, other)+`"}`, ann...)
	s.Example(t, "all others", "POST", "/auth/revoke-other-sessions", `{}`, ann...)
	s.Example(t, "one session", "GET", "/auth/list-sessions", "", ann...)
	s.Example(t, "the password", "GET", "/auth/list-accounts", "", ann...)
	pgtest.Exec(t, s.Store, `INSERT INTO identities (issuer, subject, account_id, created_at)
		SELECT 'eip155', $1, id, now() FROM accounts`, strings.ToLower(webtest.Alice))
	s.Example(t, "a wallet", "POST", "/auth/unlink-account", `{"providerId":"siwe"}`, ann...)
	s.Example(t, "all sessions", "POST", "/auth/revoke-sessions", `{}`, ann...)
	s.Example(t, "a password", "POST", "/auth/change-password", changePassword(webtest.Password, webtest.NewPassword), s.SignIn(t)...)
	s.Example(t, "signed in", "POST", "/auth/sign-out", `{}`, s.SignUp(t, "bob@example.com")...)
	s.Example(t, "an account", "POST", "/auth/delete-user", `{"password":"`+webtest.Password+`"}`, s.SignUp(t, "carol@example.com")...)
}

func TestEveryRoute_Mail(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithMail)
	ann := s.SignUp(t, "ann@example.com")
	s.Example(t, "an address", "POST", "/auth/request-password-reset", `{"email":"ann@example.com","redirectTo":"/console"}`)
	s.Example(t, "an address", "POST", "/auth/send-verification-email", `{"email":"bob@example.com"}`)
	s.Example(t, "an address", "POST", "/auth/change-email", `{"newEmail":"ann@example.org"}`, ann...)
	s.Call(t, "POST", "/auth/sign-up/email", `{"name":"Bob","email":"bob@example.com","password":"`+webtest.Password+`"}`)
	s.Example(t, "a sign-up", "GET", "/auth/verify-email?token="+s.InsertLink(t, "bob@example.com", identity.Link{Purpose: account.VerifyEmail}), "")
	owner, err := s.Store.Identities.AccountByEmail(t.Context(), "ann@example.com")
	if err == nil {
		err = s.Store.Identities.InsertResetToken(t.Context(), owner, account.HashToken("EXAMPLE"), time.Now().Add(time.Hour), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, s.Store, `INSERT INTO identities (issuer, subject, account_id, created_at)
		SELECT 'https://id.example', 'ann', id, now() FROM accounts WHERE email = 'ann@example.com'`)
	s.Example(t, "a password alone", "POST", "/auth/reset-password", `{"token":"EXAMPLE","newPassword":"`+webtest.NewPassword+`","unlinkAccounts":true}`)
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM identities`); n != 0 {
		t.Errorf("%d identities are left", n)
	}
}

func TestEveryRoute_Wallets(t *testing.T) {
	t.Parallel()
	p := webtest.StartOpenIDProvider(t)
	s := webtest.Start(t, p.Settings)
	wallet := webtest.Wallet(t)
	const address = `,"walletAddress":"` + webtest.Alice + `"`
	ann := s.SignUp(t, "ann@example.com")
	s.Example(t, "a nonce", "POST", "/auth/siwe/nonce", `{"walletAddress":"`+webtest.Alice+`","chainId":10}`)
	s.Example(t, "a wallet", "POST", "/auth/siwe/link", webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address), ann...)
	s.Example(t, "a wallet", "POST", "/auth/siwe/verify", webtest.SignedBody(t, wallet, webtest.WalletMessage(s.WalletNonce(t)), address))
	s.Example(t, "a page to return to", "POST", "/auth/sign-in/oauth2", `{"providerId":"oidc","callbackURL":"/console"}`)
	s.Example(t, "a page to return to", "POST", "/auth/oauth2/link", `{"providerId":"oidc","callbackURL":"/console/account"}`, ann...)
}

func TestEveryRoute_Keys(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	s.Example(t, "a test key", "POST", "/auth/api-key/create", `{"name":"ci"}`, ann...)
	s.Example(t, "a live key with restrictions", "POST", "/auth/api-key/create",
		`{"name":"books","environment":"live","expiresIn":86400,"scopes":["intents:read"],"networks":["203.0.113.0/24"]}`, ann...)
	s.Example(t, "a page", "GET", "/auth/api-key/list?limit=1&sortBy=name", "", ann...)
	id := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM api_keys WHERE name = 'ci'`).String()
	s.Example(t, "a key", "GET", "/auth/api-key/get?id="+id, "", ann...)
	s.Example(t, "disable", "POST", "/auth/api-key/update", `{"keyId":"`+id+`","enabled":false}`, ann...)
	s.Example(t, "an hour's grace", "POST", "/auth/api-key/rotate", `{"keyId":"`+id+`","gracePeriod":3600}`, ann...)
	s.Example(t, "a key", "POST", "/auth/api-key/delete", `{"keyId":"`+id+`"}`, ann...)
}

func TestEveryRoute_Members(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann, bob := s.SignUp(t, "ann@example.com"), s.SignUp(t, "bob@example.com")
	const on = "/auth/organization/"
	s.Example(t, "a shared account", "POST", on+"create", `{"name":"Shop"}`, ann...)
	shop := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM accounts WHERE shared`).String()
	s.Example(t, "two accounts", "GET", on+"list", "", ann...)
	s.Example(t, "the own account", "POST", on+"set-active", `{"organizationId":null}`, ann...)
	s.Example(t, "a shared account", "POST", on+"set-active", `{"organizationSlug":"`+shop+`"}`, ann...)
	invite := func() string {
		pgtest.Exec(t, s.Store, `UPDATE invitations SET token_hash = sha256('EXAMPLE')`)
		return `{"invitationId":"EXAMPLE"}`
	}
	invitation := func() string {
		return pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM invitations ORDER BY created_at DESC LIMIT 1`).String()
	}
	s.Example(t, "where no mail is sent", "POST", on+"invite-member", `{"email":"Bob@example.com","role":"viewer"}`, ann...)
	s.Example(t, "one invitation", "GET", on+"list-invitations", "", ann...)
	s.Example(t, "an invitation", "POST", on+"cancel-invitation", `{"invitationId":"`+invitation()+`"}`, ann...)
	s.Call(t, "POST", on+"invite-member", `{"email":"bob@example.com","role":"viewer"}`, ann...)
	s.Example(t, "an invitation", "POST", on+"reject-invitation", invite(), bob...)
	pgtest.Exec(t, s.Store, `DELETE FROM invitations`)
	s.Call(t, "POST", on+"invite-member", `{"email":"bob@example.com","role":"viewer"}`, ann...)
	request := invite()
	s.Example(t, "an invitation", "GET", on+"get-invitation?id=EXAMPLE", "", bob...)
	s.Example(t, "an invitation", "POST", on+"accept-invitation", request, bob...)
	s.Example(t, "a member", "GET", on+"get-active-member", "", bob...)
	s.Example(t, "a page", "GET", on+"list-members?limit=1&offset=1", "", ann...)
	s.Example(t, "a shared account", "GET", on+"get-full-organization", "", ann...)
	s.Example(t, "a role", "POST", on+"update-member-role", `{"memberId":"`+s.AccountID(t, "bob@example.com")+`","role":"developer"}`, ann...)
	s.Example(t, "a shared account", "POST", on+"leave", `{"organizationId":"`+shop+`"}`, bob...)
	pgtest.Exec(t, s.Store, `INSERT INTO members (account_id, person_id, role, created_at)
		VALUES ($1, $2, 'viewer', now())`, shop, s.AccountID(t, "bob@example.com"))
	s.Example(t, "an address", "POST", on+"remove-member", `{"memberIdOrEmail":"bob@example.com"}`, ann...)
	s.Example(t, "a name", "POST", on+"update", `{"organizationId":"`+shop+`","data":{"name":" Kiosk "}}`, ann...)
	s.Example(t, "a shared account", "POST", on+"delete", `{"organizationId":"`+shop+`"}`, ann...)
}

func TestEveryRoute_Passkeys(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithPasskeys)
	ann := s.Browse(t, s.SignUp(t, "ann@example.com")...)
	device := passkeytest.NewEd25519(t, webtest.PasskeySite, webtest.PasskeyHost)
	ann.AddPasskey(device)
	s.Example(t, "another passkey", "GET", webtest.PasskeyPath+"generate-register-options?name=laptop", "", ann.Header()...)
	second := webtest.PasskeyRegistration(passkeytest.NewEd25519(t, webtest.PasskeySite, webtest.PasskeyHost).Register(t, ann.Options("generate-register-options")), "phone")
	s.Example(t, "a passkey", "POST", webtest.PasskeyPath+"verify-registration", second, ann.Header()...)
	s.Example(t, "two passkeys", "GET", webtest.PasskeyPath+"list-user-passkeys", "", ann.Header()...)
	s.Example(t, "a name", "POST", webtest.PasskeyPath+"update-passkey", `{"id":"`+passkeyID(t, s)+`","name":"desk"}`, ann.Header()...)
	s.Example(t, "signed out", "GET", webtest.PasskeyPath+"generate-authenticate-options", "")
	nobody := s.Browse(t)
	response := webtest.PasskeyAuthentication(device.Authenticate(t, nobody.Options("generate-authenticate-options")))
	s.Example(t, "a passkey", "POST", webtest.PasskeyPath+"verify-authentication", response, nobody.Header()...)
	s.Example(t, "a passkey", "POST", webtest.PasskeyPath+"delete-passkey", `{"id":"`+passkeyID(t, s)+`"}`, ann.Header()...)
}
