package identity_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// logUpTo is the log up to a statement with this text, which the server refuses.
func logUpTo(t *testing.T, store *postgres.Store, log *asynctest.Buffer, end string) string {
	t.Helper()
	if _, err := store.Pool().ExecContext(t.Context(), "SELECT '"+end+"' FROM nothing"); err == nil {
		t.Error("there is a table called nothing")
	}
	asynctest.Eventually(t, "the log has "+end, func() bool { return strings.Contains(log.String(), end) })
	return log.String()
}

// startLogging runs a private Postgres with these settings, as its operator may have set them.
func startLogging(t *testing.T, settings map[string]string) (*postgres.Store, *asynctest.Buffer) {
	t.Helper()
	log := &asynctest.Buffer{}
	server, err := embedded.StartPostgres(t.Context(), embedded.PostgresConfig{Ephemeral: true, Log: func(line string) { fmt.Fprintln(log, line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	operator := pgtest.Open(t, server.URL)
	if _, err := operator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, value := range settings {
		pgtest.Exec(t, operator, "ALTER DATABASE intents SET "+name+" = '"+value+"'")
	}
	return pgtest.Open(t, server.URL), log
}

// useSecrets does all that handles a secret, first as it succeeds and then as Postgres refuses it, and returns the hashes that
// the statements contain.
func useSecrets(t *testing.T, store *postgres.Store) map[string][]byte {
	t.Helper()
	core := newServiceOn(t, store, withPasswords(t))
	ctx, v, secrets := t.Context(), identity.Client{IP: "203.0.113.7"}, map[string][]byte{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	note := func(in *identity.SignedIn) {
		token := account.HashToken(in.Token)
		secrets["password hash"], secrets["session of "+in.Session.ID.String()] = []byte(in.Account.PasswordHash), token[:]
	}
	in := signUp(t, core, v, "ann@example.com")
	note(in)
	if _, err := core.SignUp(ctx, v, "", "ann@example.com", password, ""); !errors.Is(err, account.ErrEmailTaken) {
		t.Errorf("an address that is taken: %v", err)
	}
	again, err := core.SignIn(ctx, v, "ann@example.com", password)
	must(err)
	note(again)
	form := sha256.Sum256([]byte("a form"))
	secrets["form"] = form[:]
	key, _, err := core.CreateKey(ctx, v, own(in), account.KeyRequest{Name: "ci", FormToken: form})
	must(err)
	next, _, err := core.RotateKey(ctx, v, own(in), key.ID, time.Hour)
	must(err)
	secrets["key"], secrets["next key"] = key.Hash[:], next.Hash[:]
	_, _, err = store.UsableKey(ctx, next.Hash, time.Now())
	must(err)
	for _, err := range store.KeyHashes(ctx) {
		must(err)
	}
	_, err = store.Keys(ctx, in.Account.ID)
	must(err)
	_, _, err = core.Session(ctx, again.Token)
	must(err)
	_, err = core.Sessions(ctx, in.Account.ID)
	must(err)
	nonce, err := core.WalletNonce(ctx, v)
	must(err)
	nonceHash := sha256.Sum256([]byte(nonce))
	secrets["nonce"] = nonceHash[:]
	_, err = store.TakeNonce(ctx, nonceHash, time.Now())
	must(err)
	must(core.SignOut(ctx, identity.Client{Token: again.Token}))
	changed, err := core.ChangePassword(ctx, v, own(in), password, newPassword)
	must(err)
	changedToken := account.HashToken(changed.Token)
	secrets["changed password"], secrets["session of the change"] = []byte(changed.Account.PasswordHash), changedToken[:]
	resetToken := account.HashToken("a token")
	secrets["reset token"] = resetToken[:]
	must(store.InsertResetToken(ctx, in.Account, resetToken, time.Now().Add(time.Hour), nil))
	_, err = core.ResetPassword(ctx, v, identity.ResetRequest{Token: "a token", NewPassword: password})
	must(err)
	linkToken := account.HashToken("a link")
	secrets["link token"] = linkToken[:]
	const reset = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g"
	secrets["password that was reset"] = []byte(reset)
	link := postgres.Link{Purpose: account.VerifyEmail, AccountID: in.Account.ID, Email: in.Account.Email, SignUp: postgres.SignUp{PasswordHash: reset}}
	must(store.InsertLink(ctx, linkToken, link, time.Now().Add(time.Hour)))
	must(store.SetPassword(ctx, "ann@example.com", reset, account.Actor{Operator: true}, time.Now()))

	// Nothing of this is there any more, so each statement is an error of its own, which Postgres logs with its text.
	pgtest.Exec(t, store, "ALTER TABLE accounts RENAME TO a")
	pgtest.Exec(t, store, "ALTER TABLE sessions RENAME TO s")
	pgtest.Exec(t, store, "ALTER TABLE api_keys RENAME TO k")
	pgtest.Exec(t, store, "ALTER TABLE nonces RENAME TO n")
	pgtest.Exec(t, store, "ALTER TABLE reset_tokens RENAME TO r")
	pgtest.Exec(t, store, "ALTER TABLE link_tokens RENAME TO l")
	_, linkErr := store.LinkByToken(ctx, linkToken, time.Now())
	_, tokenErr := store.AccountByResetToken(ctx, resetToken, time.Now())
	_, _, sessionErr := core.Session(ctx, again.Token)
	_, _, usableErr := store.UsableKey(ctx, next.Hash, time.Now())
	_, nonceErr := store.TakeNonce(ctx, nonceHash, time.Now())
	_, _, formErr := core.CreateKey(ctx, v, own(in), account.KeyRequest{Name: "ci", FormToken: form})
	for what, err := range map[string]error{
		"session": sessionErr, "key": usableErr, "nonce": nonceErr, "form": formErr, "token": tokenErr, "link": linkErr,
		"new token": store.InsertResetToken(ctx, in.Account, resetToken, time.Now(), nil),
		"new link":  store.InsertLink(ctx, linkToken, link, time.Now()),
		"use link":  call(store.UseLink(ctx, linkToken, &link, postgres.Mail{}, account.Actor{}, time.Now())),
		"sign-up":   store.InsertSignUp(ctx, in.Account, postgres.Mail{Kind: account.MailSignUp}),
		"reset": func() error {
			_, err := store.ResetPassword(ctx, resetToken, reset, false, account.AuditEntry{AccountID: in.Account.ID})
			return err
		}(),
		"account": store.InsertAccount(ctx, in.Account, account.AuditEntry{}), "sign-out": core.SignOut(ctx, identity.Client{Token: in.Token}),
		"password": store.SetPassword(ctx, "ann@example.com", reset, account.Actor{}, time.Now()),
		"sign-in":  store.InsertSession(ctx, in.Session, in.Account, account.AuditEntry{}),
		"change":   store.ChangePassword(ctx, in.Account, reset, in.Session.ID, changed.Session, account.AuditEntry{}),
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
