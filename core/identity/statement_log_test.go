package identity_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// logUpTo is the log up to a statement with this text, which the server refuses.
func logUpTo(t *testing.T, store *rooms.Rooms, log *asynctest.Buffer, end string) string {
	t.Helper()
	if _, err := store.Pool().ExecContext(t.Context(), "SELECT '"+end+"' FROM nothing"); err == nil {
		t.Error("there is a table called nothing")
	}
	asynctest.Eventually(t, "the log has "+end, func() bool { return strings.Contains(log.String(), end) })
	return log.String()
}

// startLogging runs a private Postgres with these settings, as its operator may have set them.
func startLogging(t *testing.T, settings map[string]string) (*rooms.Rooms, *asynctest.Buffer) {
	t.Helper()
	log := &asynctest.Buffer{}
	server := must(embedded.StartPostgres(t.Context(), embedded.PostgresConfig{Ephemeral: true, Log: func(line string) { fmt.Fprintln(log, line) }}))(t)
	t.Cleanup(func() { _ = server.Stop() })
	operator := pgtest.Open(t, server.URL)
	ok(t, call(operator.Migrate(t.Context())))
	for name, value := range settings {
		pgtest.Exec(t, operator, "ALTER DATABASE intents SET "+name+" = '"+value+"'")
	}
	return pgtest.Open(t, server.URL), log
}

// useSecrets does all that handles a secret, first as it succeeds and then as Postgres refuses it, and returns the hashes that
// the statements contain.
func useSecrets(t *testing.T, store *rooms.Rooms) map[string][]byte {
	t.Helper()
	core := newServiceOn(t, store, withPasswords(t))
	ctx, v, secrets := t.Context(), identity.Client{IP: "203.0.113.7"}, map[string][]byte{}
	note := func(in *identity.SignedIn) {
		token := account.HashToken(in.Token)
		secrets["password hash"], secrets["session of "+in.Session.ID.String()] = []byte(in.Account.PasswordHash), token[:]
	}
	in := signUp(t, core, v, "ann@example.com")
	note(in)
	is(t, "an address that is taken", call(core.Persons.SignUp(ctx, v, "", "ann@example.com", password, "")), account.ErrEmailTaken)
	again := must(core.Persons.SignIn(ctx, v, "ann@example.com", password))(t)
	note(again)
	form := sha256.Sum256([]byte("a form"))
	secrets["form"] = form[:]
	key := must2(core.Keys.Create(ctx, v, own(in), account.KeyRequest{Name: "ci", FormToken: form}))(t)
	next := must2(core.Keys.Rotate(ctx, v, own(in), key.ID, time.Hour))(t)
	secrets["key"], secrets["next key"] = key.Hash[:], next.Hash[:]
	ok(t, call2(store.Identities.UsableKey(ctx, next.Hash, time.Now())))
	for _, err := range store.Identities.KeyHashes(ctx) {
		ok(t, err)
	}
	ok(t, call(store.Identities.Keys(ctx, in.Account.ID)))
	ok(t, call2(core.Sessions.Get(ctx, again.Token)))
	ok(t, call(core.Sessions.List(ctx, in.Account.ID)))
	nonce := must(core.Persons.WalletNonce(ctx, v))(t)
	nonceHash := sha256.Sum256([]byte(nonce))
	secrets["nonce"] = nonceHash[:]
	ok(t, call(store.Identities.TakeNonce(ctx, nonceHash, time.Now())))
	ok(t, core.Sessions.SignOut(ctx, identity.Client{Token: again.Token}))
	changed := must(core.Persons.ChangePassword(ctx, v, own(in), password, newPassword))(t)
	changedToken := account.HashToken(changed.Token)
	secrets["changed password"], secrets["session of the change"] = []byte(changed.Account.PasswordHash), changedToken[:]
	resetToken := account.HashToken("a token")
	secrets["reset token"] = resetToken[:]
	ok(t, store.Identities.InsertResetToken(ctx, in.Account, resetToken, time.Now().Add(time.Hour), nil))
	ok(t, call(core.Persons.ResetPassword(ctx, v, identity.ResetRequest{Token: "a token", NewPassword: password})))
	linkToken := account.HashToken("a link")
	secrets["link token"] = linkToken[:]
	const reset = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g"
	secrets["password that was reset"] = []byte(reset)
	link := identity.Link{Purpose: account.VerifyEmail, AccountID: in.Account.ID, Email: in.Account.Email, SignUp: identity.SignUp{PasswordHash: reset}}
	ok(t, store.Identities.InsertLink(ctx, linkToken, link, time.Now().Add(time.Hour)))
	ok(t, store.Identities.SetPassword(ctx, "ann@example.com", reset, account.Actor{Operator: true}, time.Now()))

	// Nothing of this is there any more, so each statement is an error of its own, which Postgres logs with its text.
	for _, table := range []string{"accounts", "sessions", "api_keys", "nonces", "reset_tokens", "link_tokens"} {
		pgtest.Exec(t, store, "ALTER TABLE "+table+" RENAME TO no_"+table)
	}
	for what, err := range map[string]error{
		"session":   call2(core.Sessions.Get(ctx, again.Token)),
		"key":       call2(store.Identities.UsableKey(ctx, next.Hash, time.Now())),
		"nonce":     call(store.Identities.TakeNonce(ctx, nonceHash, time.Now())),
		"form":      call2(core.Keys.Create(ctx, v, own(in), account.KeyRequest{Name: "ci", FormToken: form})),
		"token":     call(store.Identities.AccountByResetToken(ctx, resetToken, time.Now())),
		"link":      call(store.Identities.LinkByToken(ctx, linkToken, time.Now())),
		"new token": store.Identities.InsertResetToken(ctx, in.Account, resetToken, time.Now(), nil),
		"new link":  store.Identities.InsertLink(ctx, linkToken, link, time.Now()),
		"use link":  call(store.Identities.UseLink(ctx, linkToken, &link, mail.Draft{}, account.Actor{}, time.Now())),
		"sign-up":   store.Identities.InsertSignUp(ctx, in.Account, ""),
		"reset":     call(store.Identities.ResetPassword(ctx, resetToken, reset, false, account.AuditEntry{AccountID: in.Account.ID})),
		"account":   store.Identities.InsertAccount(ctx, in.Account, account.AuditEntry{}), "sign-out": core.Sessions.SignOut(ctx, identity.Client{Token: in.Token}),
		"password": store.Identities.SetPassword(ctx, "ann@example.com", reset, account.Actor{}, time.Now()),
		"sign-in":  store.Identities.InsertSession(ctx, in.Session, in.Account, account.AuditEntry{}),
		"change": store.Identities.InTx(ctx, postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
			return tx.ChangePassword(ctx, tx.OperatorRights(), in.Account, reset, changed.Session, account.AuditEntry{})
		}),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	return secrets
}

// Postgres's log has no hash by its default settings, whatever fails, and none when it logs every statement as long as it
// leaves the parameters out.
func TestPostgresLog_NoSecrets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings map[string]string
		says     string // what shows that the log is kept as meant
		shown    bool
	}{
		"by default": {nil, "STATEMENT:  INSERT INTO", false},
		"every statement, without parameters": {
			map[string]string{"log_statement": "all", "log_min_duration_statement": "0", "log_parameter_max_length": "0"}, "execute", false,
		},
		// What deploy/security.md warns of.
		"every statement, with parameters": {map[string]string{"log_statement": "all"}, "arameters: $1 = ", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, log := startLogging(t, c.settings)
			secrets := useSecrets(t, store)
			text := logUpTo(t, store, log, "the end of this test")
			if !strings.Contains(text, c.says) {
				t.Fatalf("the log does not say %q:\n%s", c.says, text)
			}
			for what, secret := range secrets {
				shown := strings.Contains(text, string(secret)) || strings.Contains(strings.ToLower(text), hex.EncodeToString(secret)) ||
					strings.Contains(text, base64.StdEncoding.EncodeToString(secret)) || strings.Contains(text, base64.RawURLEncoding.EncodeToString(secret))
				if shown != c.shown {
					t.Errorf("%s: shown = %t, want %t", what, shown, c.shown)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}
