package identity_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
)

const password = "correct horse battery"

var passwords = sync.OnceValues(account.NewPasswords)

func withPasswords(t *testing.T) func(*identity.Config) {
	t.Helper()
	hasher, err := passwords()
	if err != nil {
		t.Fatal(err)
	}
	return func(c *identity.Config) { c.Passwords = hasher }
}

// Everything that changes who may come in is in the audit log, with who did it and from where.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	home := identity.Client{IP: "203.0.113.7", UserAgent: "Home/1.0"}
	work := identity.Client{IP: "203.0.113.8", UserAgent: "Work\x00/1.0\xff" + strings.Repeat("x", 300)}
	ctx := t.Context()
	first, err := core.SignUp(ctx, home, "Ann", "ann@example.com", password, "")
	if err != nil {
		t.Fatal(err)
	}
	owner := first.Account.ID
	second, err := core.SignIn(ctx, work, "ann@example.com", password)
	if err != nil {
		t.Fatal(err)
	}
	test, _, err := core.CreateKey(ctx, home, own(first), account.KeyRequest{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	live, _, err := core.CreateKey(ctx, work, own(first), account.KeyRequest{Name: "<b>", Environment: network.Live, ExpiresIn: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	name, off := "renamed", false
	if _, err := core.UpdateKey(ctx, home, owner, test.ID, account.KeyChange{Name: &name, Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	next, _, err := core.RotateKey(ctx, home, own(first), test.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := core.RotateKey(ctx, home, own(first), live.ID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"delete a key":     core.DeleteKey(ctx, home, owner, next.ID),
		"revoke a session": core.RevokeSession(ctx, home, owner, second.Session.ID),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	third, err := core.SignIn(ctx, home, "ann@example.com", password)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := core.RevokeOtherSessions(ctx, home, third.Session); n != 1 || err != nil {
		t.Errorf("%d sessions, %v", n, err)
	}
	// What fails leaves no trace.
	for what, err := range map[string]error{
		"an unknown key":     core.DeleteKey(ctx, home, owner, uuid.New()),
		"an unknown session": core.RevokeSession(ctx, home, owner, uuid.New()),
	} {
		if !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := core.RotateKey(ctx, home, own(first), live.ID, time.Minute); !errors.Is(err, account.ErrKeyRotated) {
		t.Errorf("rotated twice: %v", err)
	}
	if err := core.DeleteAccount(ctx, with(home, "a wrong password"), own(third)); !errors.Is(err, identity.ErrPassword) {
		t.Errorf("a wrong password: %v", err)
	}
	if n, err := core.RevokeSessions(ctx, home, owner); n != 1 || err != nil {
		t.Errorf("%d sessions, %v", n, err)
	}
	if err := core.DeleteAccount(ctx, with(work, password), own(third)); err != nil {
		t.Fatal(err)
	}
	if err := core.DeleteAccount(ctx, with(work, password), own(third)); !errors.Is(err, identity.ErrSignedOut) {
		t.Errorf("deleted twice: %v", err)
	}

	stamp := func(at *time.Time) string { return at.UTC().Format(time.RFC3339) }
	old, err := core.Store.Key(ctx, owner, live.ID)
	if err != nil {
		t.Fatal(err)
	}
	workplace := "203.0.113.8 Work/1.0\uFFFD" + strings.Repeat("x", 247)
	want := []string{
		"signed_up|||203.0.113.7 Home/1.0",
		"signed_in||with a password|203.0.113.7 Home/1.0",
		"signed_in||with a password|" + workplace,
		"key_created|ci|test key, never expires|203.0.113.7 Home/1.0",
		"key_created|<b>|live key, expires " + stamp(live.ExpiresAt) + "|" + workplace,
		`key_updated|renamed|name "ci" → "renamed", disabled|203.0.113.7 Home/1.0`,
		"key_rotated|renamed|" + next.Start + "… takes its place at once|203.0.113.7 Home/1.0",
		"key_rotated|<b>|" + other.Start + "… takes its place, it works until " + stamp(old.ExpiresAt) + "|203.0.113.7 Home/1.0",
		"key_deleted|renamed||203.0.113.7 Home/1.0",
		"sessions_revoked||one session|203.0.113.7 Home/1.0",
		"signed_in||with a password|203.0.113.7 Home/1.0",
		"sessions_revoked||all other sessions|203.0.113.7 Home/1.0",
		"sessions_revoked||all sessions|203.0.113.7 Home/1.0",
		"account_deleted|||" + workplace,
	}
	if diff := cmp.Diff(want, auditLog(t, core, owner)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// own is who has signed in, acting on the account that they signed in to.
func own(in *identity.SignedIn) *identity.Principal {
	return &identity.Principal{Session: in.Session, Person: in.Account, Account: in.Account, Role: account.RoleOwner}
}

// with is a client whose request repeats the password.
func with(client identity.Client, password string) identity.Client {
	client.Password = password
	return client
}

// auditLog is an account's log, oldest first, without the entries of whole hours, which TestAuditLog_Hourly sees to.
func auditLog(t *testing.T, core *identity.Service, owner uuid.UUID) []string {
	t.Helper()
	entries, err := core.Store.AuditLog(t.Context(), owner, uuid.Nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, e := range slices.Backward(entries) {
		switch e.Action {
		case account.SignInFailed, account.SignedOut, account.ResetRequested, account.AccountSwitched:
		default:
			lines = append(lines, fmt.Sprintf("%s|%s|%s|%s %s", e.Action, e.KeyName, e.Detail, e.Actor.IPAddress, e.Actor.UserAgent))
		}
	}
	return lines
}
