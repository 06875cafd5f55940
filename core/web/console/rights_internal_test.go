package console

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/wire"
)

// class is what a form asks of a session. The zero value is none, so that a form without a class fails the test.
type class int

const (
	_ class = iota
	// reads writes nothing with the session's rights.
	reads
	// rights writes with the rights of the session, read in the transaction.
	rights
	// effect gives or takes something: it needs a fresh session or the password besides.
	effect
	// password wants the password in every session, besides the rights.
	password
	// passkey has an effect on a passkey, and so needs a session that one has confirmed besides the rights.
	passkey
	// begins has an effect and writes nothing by itself: what it leads to is another route's write.
	begins
)

// scene is what a form is sent about.
type scene struct {
	*pgtest.Shop
	token, intent string
	// toSign is an intent that its user signs, and signature the user's.
	toSign, signature string
}

// walked is a form as the test sends it.
type walked struct {
	class class
	// id is that of the path.
	id func(scene) any
	// fields are names and values in turn.
	fields func(scene) []string
	// ofAccount is set for a write to the shared account, which a role there must allow.
	ofAccount bool
}

func none(scene) any         { return "" }
func live(s scene) any       { return s.Live.ID }
func hook(s scene) any       { return s.Webhook.ID }
func transferOf(s scene) any { return s.intent }
func toSign(s scene) any     { return s.toSign }

func fixed(fields ...string) func(scene) []string {
	return func(scene) []string { return fields }
}

func of(name string, value func(scene) any, fields ...string) func(scene) []string {
	return func(s scene) []string { return append(fields, name, fmt.Sprint(value(s))) }
}

func member(s scene) any { return s.Member }

// passkeyOf is the id of the owner's passkey, which has that of the owner.
func passkeyOf(s scene) any { return s.Owner.ID }

// transferFieldsOf is a transfer by the shop's test key.
func transferFieldsOf(s scene) []string {
	return []string{
		"environment", "test", "key", s.Test.ID.String(), "sourceChain", "eip155:11155111", "sourceAccount", pgtest.Alice, "sourceToken", pgtest.SepoliaUSDC,
		"sourceAmount", "1.5", "destinationChain", "", "destinationAccount", pgtest.Bob, "destinationToken", "", "destinationAmount", "",
		"deadline", "3600", "reference", "",
	}
}

// formClasses are the classes of all forms. The fields ask for what has the effect: a live key, a role, a role less.
var formClasses = map[string]walked{
	"/console/keys": {effect, none, func(s scene) []string {
		return []string{"name", "ci", "environment", "live", "expiresIn", "never", "webhooks", "1", "networks", "", "formToken", s.token}
	}, true},
	originsPath:                   {rights, none, fixed("origins", "https://app.example.com"), true},
	"/console/keys/{id}/rename":   {rights, live, fixed("name", "ci"), true},
	"/console/keys/{id}/enable":   {effect, live, fixed(), true},
	"/console/keys/{id}/disable":  {rights, live, fixed(), true},
	"/console/keys/{id}/expire":   {effect, live, fixed("expiresIn", "never"), true},
	"/console/keys/{id}/restrict": {effect, live, fixed("webhooks", "1", "intents:read", "1", "networks", ""), true},
	"/console/keys/{id}/rotate":   {effect, live, fixed("gracePeriod", "0"), true},
	"/console/keys/{id}/delete":   {rights, live, fixed(), true},

	"/console/transfers/{id}/transaction": {rights, transferOf, fixed("hash", "0x"+strings.Repeat("a", 64)), true},
	"/console/transfers/{id}/simulate":    {rights, transferOf, fixed("status", "failed"), true},
	"/console/transfers/{id}/signature":   {rights, toSign, of("signature", func(s scene) any { return s.signature }), true},
	// Where quotes are asked for, quotes.Service.Ask demands a grant.
	newTransferPath + "/confirm": {reads, none, transferFieldsOf, true},
	newTransferPath + "/record": {rights, none, func(s scene) []string {
		return append(transferFieldsOf(s), "request", pgtest.TransferBody, "formToken", s.token)
	}, true},

	"/console/webhooks": {effect, none, func(s scene) []string {
		return []string{"url", "https://example.com", "environment", "live", "description", "", "formToken", s.token}
	}, true},
	"/console/webhooks/{id}/change":  {effect, hook, fixed("url", "https://example.org", "type:transfer.filled", "1", "description", ""), true},
	"/console/webhooks/{id}/enable":  {effect, hook, fixed(), true},
	"/console/webhooks/{id}/disable": {rights, hook, fixed(), true},
	"/console/webhooks/{id}/rotate":  {effect, hook, fixed("gracePeriod", "0"), true},
	"/console/webhooks/{id}/test":    {rights, hook, fixed(), true},
	"/console/webhooks/{id}/replay":  {rights, hook, fixed("since", "3600"), true},
	"/console/webhooks/{id}/retry":   {rights, hook, fixed("event", feed.ID(uuid.New()).String()), true},
	"/console/webhooks/{id}/delete":  {rights, hook, fixed(), true},

	"/console/account/revoke-session":    {rights, none, of("session", func(s scene) any { return s.Other.ID }), false},
	"/console/account/revoke-others":     {rights, none, fixed(), false},
	"/console/account/delete":            {password, none, fixed("password", "PASSWORD"), false},
	passwordPath:                         {password, none, fixed("password", "PASSWORD", "newPassword", "staple correct horse"), false},
	emailPath:                            {effect, none, fixed("newEmail", "new@example.com"), false},
	"/console/account/send-verification": {reads, none, fixed(), false}, // anybody can ask for it
	linkPath + "/openid-connect":         {begins, none, fixed(), false},
	unlinkPath: {effect, none, func(s scene) []string {
		return []string{"issuer", s.Wallet.Issuer, "subject", s.Wallet.Subject}
	}, false},
	confirmPath:               {password, none, fixed("password", "PASSWORD", "next", "/console"), false},
	renamePasskeyPath:         {rights, none, of("passkey", passkeyOf, "name", "desk"), false},
	removePasskeyPath:         {passkey, none, of("passkey", passkeyOf), false},
	"/console/accounts/act":   {rights, none, of("account", func(s scene) any { return s.Owner.ID }), false},
	environmentPath:           {reads, none, fixed("environment", "live", "next", "/console/keys"), false}, // a cookie of this browser
	"/console/accounts/share": {rights, none, func(s scene) []string { return []string{"name", "Kiosk", "formToken", s.token} }, false},

	"/console/members/leave":  {rights, none, fixed(), false},
	"/console/members/invite": {effect, none, fixed("email", "eve@example.com", "role", "developer"), true},
	"/console/members/cancel": {rights, none, of("invitation", func(s scene) any { return s.Invitation }), true},
	"/console/members/change": {effect, none, of("person", member, "role", "viewer"), true},
	"/console/members/remove": {effect, none, of("person", member), true},
	"/console/members/rename": {rights, none, fixed("name", "Kiosk"), true},
	"/console/members/delete": {effect, none, fixed(), true},
	// The person gets the role that the invitation has had since it was made.
	invitationPath + "/accept":  {rights, none, of("token", func(s scene) any { return s.Token }), false},
	invitationPath + "/decline": {rights, none, of("token", func(s scene) any { return s.Token }), false},
}

const walkerPassword = "correct horse battery"

// Every form has a class, and keeps it: what it writes is written with rights that are read in the transaction, and what gives or takes
// something needs a fresh session or the password, for which it has a field.
func TestFormRoutes_Rights(t *testing.T) {
	t.Parallel()
	rooms := pgtest.New(t)
	c := newWalkedConsole(t, rooms)
	hash, err := c.Identity.Passwords.Hash(t.Context(), walkerPassword)
	if err != nil {
		t.Fatal(err)
	}
	for path, route := range c.formRoutes() {
		known := formClasses[path]
		if known.class == 0 {
			t.Errorf("%s has no class", path)
		}
		if known.class <= reads {
			continue
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := walk{t: t, rooms: rooms, path: path, answer: route.answer, walked: known}
			w.Shop, w.token = pgtest.NewShop(t, rooms, hash), newFormToken()
			of := feed.Owner{AccountID: w.Account.ID, Environment: network.Test}
			w.intent = pgtest.InsertTransfer(t, rooms, c.Registry.Current(), of.AccountID, pgtest.TransferBody).ID.String()
			if path == renamePasskeyPath || path == removePasskeyPath {
				pgtest.Exec(t, rooms, `INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, backup_eligible, backed_up,
						transports, aaguid, name, created_at)
					VALUES ($1, $1, uuid_send($1), 'key', 0, false, false, '', $1, 'laptop', now())`, w.Owner.ID)
			}
			w.toSign, w.signature = insertToSign(t, c, of)
			w.run()
		})
	}
	if len(formClasses) != len(c.formRoutes()) {
		t.Errorf("%d classes of %d forms", len(formClasses), len(c.formRoutes()))
	}
}

// insertToSign records a transfer that a new account signs, and returns its id and the signature.
func insertToSign(t *testing.T, c *console, owner feed.Owner) (id, signature string) {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	body := strings.ReplaceAll(pgtest.TransferBody, pgtest.Alice, crypto.PubkeyToAddress(key.PublicKey).Hex())
	request, issues := wire.DecodeTransferRequest([]byte(strings.Replace(body, "{", `{"signing":"erc3009",`, 1)))
	if len(issues) > 0 {
		t.Fatalf("%+v", issues)
	}
	by := transfer.Caller{AccountID: owner.AccountID, KeyID: uuid.New(), Environment: owner.Environment}
	intent, err := transfer.New(transfer.NewID(c.Now()), by, request, c.Registry.Current())
	if err != nil {
		t.Fatal(err)
	}
	if intent, err = c.Transfers.InsertTransfer(t.Context(), intent, intents.Idempotency{}); err != nil {
		t.Fatal(err)
	}
	record, err := c.Intents.Record(t.Context(), intent)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := crypto.Sign(record.Signature.Digest[:], key)
	if err != nil {
		t.Fatal(err)
	}
	return intent.ID.String(), hexutil.Encode(signed)
}

func newWalkedConsole(t *testing.T, rooms *rooms.Rooms) *console {
	t.Helper()
	pgtest.LoadRegistry(t, rooms)
	registry, err := registry.NewLiveRegistry(t.Context(), rooms.Registry)
	if err != nil {
		t.Fatal(err)
	}
	const url, most = "https://intents.example", identity.MaxLimit
	service := identity.New(identity.Config{
		Store: rooms.Identities, Mail: rooms.Mail, Passwords: pgtest.Passwords(), MailQueued: func() {}, Log: slog.New(slog.DiscardHandler),
		Limits: identity.Limits{
			SignInPerIP: most, SignInPerAccount: most, SignInPerAccountAndIP: most, SignUpPerIP: most, KeysPerAccount: most, KeysPerIP: most,
			MailsPerAddress: most, MailsPerIP: most,
		},
		Metrics: telemetry.NewRegistry(), PublicURL: url,
	})
	hooks := webhooks.NewService(rooms.Webhooks, pgtest.WebhookRules(t, make([]byte, 32), nil), service)
	c := &console{Config: Config{
		Now:      rooms.Identities.Now,
		Identity: service, Identities: rooms.Identities, Transfers: rooms.Intents, Events: rooms.Feed, Webhooks: hooks, Registry: registry, PublicURL: url,
		Intents: intents.New(intents.Config{Store: rooms.Intents, Registry: registry}),
		Cookie:  identity.NewCookie(url), Log: slog.New(slog.DiscardHandler),
	}, assets: newAssets()}
	if c.pages, err = newPages(c.assets); err != nil {
		t.Fatal(err)
	}
	return c
}

// walk is one form in one shop.
type walk struct {
	t      *testing.T
	rooms  *rooms.Rooms
	path   string
	answer page
	scene
	walked
}

func (w *walk) run() {
	w.t.Helper()
	session := w.Session.ID
	if w.class != begins {
		// The form was admitted while the session and the role were there.
		pgtest.Exec(w.t, w.rooms, `UPDATE sessions SET id = gen_random_uuid() WHERE id = $1`, session)
		w.refused("a session that has ended", identity.ErrSignedOut)
		pgtest.Exec(w.t, w.rooms, `UPDATE sessions SET id = $1 WHERE token_hash = $2`, session, w.Session.TokenHash[:])
	}
	if w.class != begins && w.ofAccount {
		lower := account.RoleViewer
		if strings.HasPrefix(w.path, membersPath) { // only owners manage members
			lower = account.RoleDeveloper
		}
		pgtest.Exec(w.t, w.rooms, `UPDATE members SET role = $3 WHERE account_id = $1 AND person_id = $2`, w.Account.ID, w.Owner.ID, lower)
		w.refused("an owner who is a "+string(lower), identity.ErrRole)
		pgtest.Exec(w.t, w.rooms, `UPDATE members SET role = 'owner' WHERE account_id = $1 AND person_id = $2`, w.Account.ID, w.Owner.ID)
	}
	if w.class == password {
		w.asks("a wrong password in a fresh session", "a wrong password", "The password is wrong.")
	}
	pgtest.Exec(w.t, w.rooms, `UPDATE sessions SET created_at = now() - interval '11 minutes' WHERE id = $1`, session)
	w.Session.CreatedAt = w.Session.CreatedAt.Add(-11 * time.Minute)
	const asked = "You signed in more than ten minutes ago. Type your password here to confirm."
	if w.class == effect || w.class == begins {
		w.asks("an old session", walkerPassword, asked)
		if w.class == effect {
			fields := w.fields
			w.fields = func(s scene) []string { return append(fields(s), "password", "PASSWORD") }
			if page, err := w.send(walkerPassword); err != nil || page.Code >= http.StatusBadRequest {
				w.t.Errorf("in an old session with the password: %v, and the page with %d:\n%s", err, page.Code, page.Body)
			}
		}
		return
	}
	if w.class == passkey {
		page, err := w.send(walkerPassword)
		if err != nil || page.Code != http.StatusForbidden || !strings.Contains(page.Body.String(), "Confirm with your passkey that it is you") {
			w.t.Errorf("in an old session: %v, and the page with %d asks for no passkey:\n%s", err, page.Code, page.Body)
		}
		return
	}
	if page, err := w.send(walkerPassword); err != nil || strings.Contains(page.Body.String(), asked) && page.Code == http.StatusForbidden {
		w.t.Errorf("in an old session: %v\n%s", err, page.Body)
	}
}

// asks expects the page with the form again, which has a field for the password with this problem.
func (w *walk) asks(what, pass, problem string) {
	w.t.Helper()
	page, err := w.send(pass)
	body := page.Body.String()
	if err != nil || !strings.Contains(body, `id="password-problem">`+problem) || !strings.Contains(body, `<input id="password" name="password"`) {
		w.t.Errorf("%s: %v, and the page with %d has no field with %q:\n%s", what, err, page.Code, problem, body)
	}
	if strings.Contains(body, "ign out, ") {
		w.t.Errorf("%s: the page names another way besides", what)
	}
}

// refused expects an error, and that nothing is written.
func (w *walk) refused(what string, want error) {
	w.t.Helper()
	entries := func() int {
		return pgtest.LookUp[int](w.t, w.rooms, `SELECT (SELECT count(*) FROM audit_log WHERE account_id IN ($1, $2, $3)) + (SELECT count(*) FROM transfers
			WHERE account_id = $2) + (SELECT count(*) FROM transactions WHERE account_id = $2)`, w.Owner.ID, w.Account.ID, w.Member)
	}
	before := entries()
	if page, err := w.send(walkerPassword); !errors.Is(err, want) {
		w.t.Errorf("%s: %v, want %v\n%s", what, err, want, page.Body)
	}
	if after := entries(); after != before {
		w.t.Errorf("%s wrote %d rows", what, after-before)
	}
}

// send sends the form as the principal that Admit has found before.
func (w *walk) send(pass string) (*httptest.ResponseRecorder, error) {
	w.t.Helper()
	values, fields := url.Values{}, w.fields(w.scene)
	for n := 0; n < len(fields); n += 2 {
		values.Set(fields[n], strings.ReplaceAll(fields[n+1], "PASSWORD", pass))
	}
	id := fmt.Sprint(w.id(w.scene))
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, strings.ReplaceAll(w.path, "{id}", id), strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetPathValue("id", id)
	on := &identity.Principal{Session: w.Session, Person: w.Owner, Account: w.Account, Role: account.RoleOwner}
	page := httptest.NewRecorder()
	return page, w.answer(page, identity.WithPrincipal(r, on), currentUser{session: w.Session, owner: w.Owner, principal: on})
}
