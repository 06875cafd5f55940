package auth

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/web/route"
	"intents.internal/pkg/telemetry"
)

// class is what a session route asks of a session. The zero value is none, so that a route without a class fails the test.
type class int

const (
	_ class = iota
	// public routes need no session.
	public
	// reads writes nothing.
	reads
	// rights writes with the rights of the session, read in the transaction.
	rights
	// effect gives or takes something: it needs a fresh session or the password besides.
	effect
	// password wants the password in every session, besides the rights.
	password
	// begins has an effect and writes nothing by itself: what it leads to is another route's write.
	begins
)

// walked is a session route as the test calls it.
type walked struct {
	class class
	// body is that of a request to a shop.
	body func(*pgtest.Shop) string
	// ofAccount is set for a write to the shared account, which a role there must allow.
	ofAccount bool
}

// on is a route that writes to the shared account, and by one that writes to the person's own.
func on(class class, body func(*pgtest.Shop) string) walked { return walked{class, body, true} }
func by(class class, body func(*pgtest.Shop) string) walked { return walked{class, body, false} }

func text(body string) func(*pgtest.Shop) string { return func(*pgtest.Shop) string { return body } }

func ofShop(format string, of func(*pgtest.Shop) any) func(*pgtest.Shop) string {
	return func(s *pgtest.Shop) string { return fmt.Sprintf(format, of(s)) }
}

// sessionClasses are the classes of all session routes. The bodies ask for what has the effect: a live key, a role, a role less.
var sessionClasses = map[string]walked{
	"/auth/sign-up/email": {class: public}, "/auth/sign-in/email": {class: public}, "/auth/sign-out": {class: public},
	"/auth/get-session": {class: public}, "/auth/request-password-reset": {class: public}, "/auth/reset-password": {class: public},
	"/auth/siwe/nonce": {class: public}, "/auth/siwe/verify": {class: public}, "/auth/sign-in/oauth2": {class: public},
	"/auth/passkey/generate-authenticate-options": {class: public}, "/auth/passkey/verify-authentication": {class: public},
	"/auth/send-verification-email": {class: public}, "/auth/verify-email": {class: public},
	identity.OIDCCallbackPath: {class: public}, // a link that it ends is begun by oauth2/link, see TestFinishLink

	"/auth/passkey/list-user-passkeys": {class: reads}, "/auth/list-sessions": {class: reads}, "/auth/list-accounts": {class: reads}, "/auth/api-key/list": {class: reads}, "/auth/api-key/get": {class: reads},
	"/auth/organization/list": {class: reads}, "/auth/organization/get-full-organization": {class: reads}, "/auth/organization/list-members": {class: reads},
	"/auth/organization/get-active-member": {class: reads}, "/auth/organization/list-invitations": {class: reads}, "/auth/organization/get-invitation": {class: reads},

	"/auth/revoke-session":        by(rights, ofShop(`{"token":"%s"}`, func(s *pgtest.Shop) any { return s.Other.ID })),
	"/auth/revoke-other-sessions": by(rights, text(`{}`)),
	"/auth/revoke-sessions":       by(rights, text(`{}`)),
	"/auth/change-password":       by(password, text(`{"currentPassword":"PASSWORD","newPassword":"staple correct horse"}`)),
	"/auth/change-email":          by(effect, text(`{"newEmail":"new@example.com"}`)),
	"/auth/delete-user":           by(password, text(`{"password":"PASSWORD"}`)),
	"/auth/oauth2/link":           by(begins, text(`{"providerId":"oidc"}`)),
	// The message is checked before the transaction, see TestLinkIdentity_EndedSession.
	"/auth/siwe/link":      by(begins, text(`{"message":"`+strings.ReplaceAll(siweMessage, "\n", `\n`)+`","signature":"0x","walletAddress":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}`)),
	"/auth/unlink-account": by(effect, text(`{"providerId":"siwe"}`)),

	"/auth/passkey/generate-register-options": by(effect, text(``)),
	// The challenge is taken before the transaction, see TestFinishRegistration_Refused.
	"/auth/passkey/verify-registration": by(begins, text(`{"response":{}}`)),
	"/auth/passkey/update-passkey":      by(rights, text(`{"id":"PASSKEY","name":"desk"}`)),
	"/auth/passkey/delete-passkey":      by(effect, text(`{"id":"PASSKEY"}`)),

	"/auth/api-key/create": on(effect, text(`{"name":"ci","environment":"live"}`)),
	"/auth/api-key/update": on(effect, ofShop(`{"keyId":"%s","enabled":true}`, func(s *pgtest.Shop) any { return s.Live.ID })),
	"/auth/api-key/rotate": on(effect, ofShop(`{"keyId":"%s"}`, func(s *pgtest.Shop) any { return s.Live.ID })),
	"/auth/api-key/delete": on(rights, ofShop(`{"keyId":"%s"}`, func(s *pgtest.Shop) any { return s.Live.ID })),

	"/auth/organization/create":             by(rights, text(`{"name":"Kiosk"}`)),
	"/auth/organization/set-active":         by(rights, ofShop(`{"organizationId":"%s"}`, func(s *pgtest.Shop) any { return s.Owner.ID })),
	"/auth/organization/update":             on(rights, ofShop(`{"organizationId":"%s","data":{"name":"Kiosk"}}`, func(s *pgtest.Shop) any { return s.Account.ID })),
	"/auth/organization/delete":             on(effect, ofShop(`{"organizationId":"%s"}`, func(s *pgtest.Shop) any { return s.Account.ID })),
	"/auth/organization/update-member-role": on(effect, ofShop(`{"memberId":"%s","role":"viewer"}`, func(s *pgtest.Shop) any { return s.Member })),
	"/auth/organization/remove-member":      on(effect, ofShop(`{"memberIdOrEmail":"%s"}`, func(s *pgtest.Shop) any { return s.Member })),
	"/auth/organization/leave":              by(rights, ofShop(`{"organizationId":"%s"}`, func(s *pgtest.Shop) any { return s.Account.ID })),
	"/auth/organization/invite-member":      on(effect, text(`{"email":"eve@example.com","role":"developer"}`)),
	"/auth/organization/cancel-invitation":  on(rights, ofShop(`{"invitationId":"%s"}`, func(s *pgtest.Shop) any { return s.Invitation })),
	// The person gets the role that the invitation has had since it was made.
	"/auth/organization/accept-invitation": by(rights, ofShop(`{"invitationId":"%s"}`, func(s *pgtest.Shop) any { return s.Token })),
	"/auth/organization/reject-invitation": by(rights, ofShop(`{"invitationId":"%s"}`, func(s *pgtest.Shop) any { return s.Token })),
}

const siweMessage = "intents.example wants you to sign in with your Ethereum account:\n0x70997970C51812dc3A010C7d01b50e0d17dc79C8\n\n\n" +
	"URI: https://intents.example\nVersion: 1\nChain ID: 1\nNonce: abcdefgh12345678\nIssued At: 2026-01-01T00:00:00Z"

const (
	walkerPassword = "correct horse battery"
	walkerPasskey  = "01a1fc68-0656-76d5-9bf2-4a428e39a05a"
)

// Every session route has a class, and keeps it: what it writes is written with rights that are read in the transaction, and what gives
// or takes something needs a fresh session or the password.
func TestSessionRoutes_Rights(t *testing.T) {
	t.Parallel()
	rooms := pgtest.New(t)
	s := newWalkedServer(rooms)
	hash, err := s.Identity.Passwords.Hash(t.Context(), walkerPassword)
	if err != nil {
		t.Fatal(err)
	}
	for path, route := range s.sessionRoutes() {
		known := sessionClasses[path]
		switch {
		case known.class == 0:
			t.Errorf("%s has no class", path)
		case (known.class == public) != (route.need == identity.Anyone), known.class == reads && route.method != http.MethodGet,
			known.class > reads && route.method != http.MethodPost && path != "/auth/passkey/generate-register-options":
			t.Errorf("%s %s has the class %d", route.method, path, known.class)
		case known.class > reads:
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				w := walk{t: t, rooms: rooms, path: path, shop: pgtest.NewShop(t, rooms, hash), answer: route.answer, walked: known}
				if path == "/auth/passkey/update-passkey" {
					pgtest.Exec(t, rooms, `INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, backup_eligible, backed_up,
							transports, aaguid, name, created_at)
						VALUES ($1, $2, $3, 'key', 0, false, false, '', $1, 'laptop', now())`,
						walkerPasskey, w.shop.Owner.ID, walkerPasskey)
				}
				w.run()
			})
		}
	}
	if len(sessionClasses) != len(s.sessionRoutes()) {
		t.Errorf("%d classes of %d routes", len(sessionClasses), len(s.sessionRoutes()))
	}
}

func newWalkedServer(rooms *rooms.Rooms) *Server {
	wide := identity.Limits{
		SignInPerIP: identity.MaxLimit, SignInPerAccount: identity.MaxLimit, SignInPerAccountAndIP: identity.MaxLimit, SignUpPerIP: identity.MaxLimit,
		KeysPerAccount: identity.MaxLimit, KeysPerIP: identity.MaxLimit, MailsPerAddress: identity.MaxLimit, MailsPerIP: identity.MaxLimit,
	}
	const url = "https://intents.example"
	service := identity.New(identity.Config{
		Store: rooms.Identities, Mail: rooms.Mail, Passwords: pgtest.Passwords(), Limits: wide, SignUpOpen: true, MailQueued: func() {},
		Log: slog.New(slog.DiscardHandler), Metrics: telemetry.NewRegistry(), PublicURL: url,
	})
	return New(Config{Identity: service, Identities: rooms.Identities, Now: rooms.Identities.Now, PublicURL: url})
}

// walk is one route in one shop.
type walk struct {
	t      *testing.T
	rooms  *rooms.Rooms
	path   string
	shop   *pgtest.Shop
	answer route.Endpoint
	walked
}

func (w *walk) run() {
	w.t.Helper()
	session := w.shop.Session.ID
	if w.class != begins {
		// The request was admitted while the session and the role were there.
		pgtest.Exec(w.t, w.rooms, `UPDATE sessions SET id = gen_random_uuid() WHERE id = $1`, session)
		w.refused("a session that has ended", identity.ErrSignedOut)
		pgtest.Exec(w.t, w.rooms, `UPDATE sessions SET id = $1 WHERE token_hash = $2`, session, w.shop.Session.TokenHash[:])
	}
	if w.class != begins && w.ofAccount {
		lower := account.RoleViewer
		if strings.HasPrefix(w.path, "/auth/organization/") { // only owners manage members
			lower = account.RoleDeveloper
		}
		pgtest.Exec(w.t, w.rooms, `UPDATE members SET role = $3 WHERE account_id = $1 AND person_id = $2`, w.shop.Account.ID, w.shop.Owner.ID, lower)
		w.refused("an owner who is a "+string(lower), identity.ErrRole)
		pgtest.Exec(w.t, w.rooms, `UPDATE members SET role = 'owner' WHERE account_id = $1 AND person_id = $2`, w.shop.Account.ID, w.shop.Owner.ID)
	}
	if w.class == password {
		if err := w.call("a wrong password"); !errors.Is(err, identity.ErrPassword) {
			w.t.Errorf("with a wrong password in a fresh session: %v", err)
		}
	}
	pgtest.Exec(w.t, w.rooms, `UPDATE sessions SET created_at = now() - interval '11 minutes' WHERE id = $1`, session)
	w.shop.Session.CreatedAt = w.shop.Session.CreatedAt.Add(-11 * time.Minute)
	if needs := w.class == effect || w.class == begins; needs {
		w.refused("an old session", identity.ErrPasswordNeeded)
		if w.class == effect && w.takesPassword() {
			body := w.body
			w.body = func(s *pgtest.Shop) string { return strings.Replace(body(s), "{", `{"password":"PASSWORD",`, 1) }
			if err := w.call(walkerPassword); err != nil {
				w.t.Errorf("in an old session with the password: %v", err)
			}
		}
	} else if err := w.call(walkerPassword); err != nil {
		w.t.Errorf("in an old session: %v", err)
	}
}

// takesPassword reports whether the body has a member for the password, which those of passkeys have not.
func (w *walk) takesPassword() bool { return !strings.HasPrefix(w.path, "/auth/passkey/") }

// refused expects an error, and that nothing is written.
func (w *walk) refused(what string, want error) {
	w.t.Helper()
	entries := func() int {
		return pgtest.LookUp[int](w.t, w.rooms, `SELECT count(*) FROM audit_log WHERE account_id IN ($1, $2, $3)`,
			w.shop.Owner.ID, w.shop.Account.ID, w.shop.Member)
	}
	before := entries()
	if err := w.call(walkerPassword); !errors.Is(err, want) {
		w.t.Errorf("%s: %v, want %v", what, err, want)
	}
	if after := entries(); after != before {
		w.t.Errorf("%s wrote %d entries", what, after-before)
	}
}

// call answers a request of the principal that Admit has found before.
func (w *walk) call(pass string) error {
	w.t.Helper()
	body := strings.NewReader(strings.NewReplacer("PASSWORD", pass, "PASSKEY", walkerPasskey).Replace(w.body(w.shop)))
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", body)
	r.Header.Set("Content-Type", "application/json")
	on := &identity.Principal{Session: w.shop.Session, Person: w.shop.Owner, Account: w.shop.Account, Role: account.RoleOwner}
	return w.answer(httptest.NewRecorder(), identity.WithPrincipal(r, on))
}
