package retention_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/mail"
	"intents.internal/core/pgtest"
	"intents.internal/core/retention"
)

func TestPrune(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	key := pgtest.InsertKey(t, store, ann.ID)
	expired, alive := pgtest.InsertSession(t, store, ann.ID), pgtest.InsertSession(t, store, ann.ID)
	pgtest.Exec(t, store, `UPDATE sessions SET expires_at = now() - interval '1 s' WHERE id = $1`, expired.ID)
	pgtest.Exec(t, store, `UPDATE key_changes SET changed_at = now() - interval '49 h'`)
	_, cursor := pgtest.Changes(t, store, "")
	if err := pgtest.DeleteKey(t.Context(), store, ann.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Retention.Prune(t.Context(), pgtest.Now(), retention.Retention{}); err != nil {
		t.Fatal(err)
	}
	if left := pgtest.LookUp[string](t, store, `SELECT string_agg(id::text, ',') FROM sessions`); left != alive.ID.String() {
		t.Errorf("sessions left: %s, want %s", left, alive.ID)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM key_changes`); n != 1 {
		t.Errorf("%d key changes are left, want the one of today", n)
	}
	if hashes, _ := pgtest.Changes(t, store, cursor); len(hashes) != 1 {
		t.Errorf("a reader is told of %d changes after pruning, want 1", len(hashes))
	}
}

func TestPrune_KeepsValidRows(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	at := pgtest.Now()
	owner := pgtest.SignUp(t, store, "ann@example.com")
	key := pgtest.InsertKey(t, store, owner.ID)
	for name, expiresAt := range map[string]time.Time{"stale": at.Add(-time.Second), "fresh": at.Add(time.Second)} {
		pgtest.Must(t, store.Identities.InsertResetToken(t.Context(), owner, pgtest.Fingerprint(name), expiresAt, nil))
		link := identity.Link{Purpose: account.VerifyEmail, AccountID: owner.ID, Email: owner.Email}
		pgtest.Must(t, store.Identities.InsertLink(t.Context(), pgtest.Fingerprint(name), link, expiresAt))
		pgtest.Must(t, store.Mail.Insert(t.Context(), mail.Draft{Kind: mail.KindResetPassword, Recipient: name + "@example.com"}))
	}
	pgtest.Exec(t, store, `UPDATE mails SET created_at = created_at - interval '25 h' WHERE recipient LIKE 'stale%'`)
	for name, expiresAt := range map[string]time.Time{"stale": at.Add(-time.Second), "fresh": at.Add(time.Second)} {
		if err := store.Identities.InsertNonce(t.Context(), pgtest.Fingerprint(name), expiresAt); err != nil {
			t.Fatal(err)
		}
	}
	for _, age := range []time.Duration{9 * 24 * time.Hour, 7 * 24 * time.Hour, 25 * time.Hour, 23 * time.Hour} {
		usage := account.Usage{KeyID: key.ID, Minute: at.Add(-age).Truncate(time.Minute), Accepted: 1}
		if _, err := store.Identities.RecordUsage(t.Context(), uuid.New(), []account.Usage{usage}, at.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	// More than one batch.
	pgtest.Exec(t, store, `INSERT INTO key_usage (account_id, minute, key_id, accepted, limited, refused)
		SELECT gen_random_uuid(), '2026-01-01', gen_random_uuid(), 1, 0, 0 FROM generate_series(1, 20001)`)
	if _, err := store.Retention.Prune(t.Context(), at, retention.Retention{}); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"nonces": 1, "key_usage": 3, "usage_reports": 1, "api_keys": 1, "audit_log": 2, "reset_tokens": 1, "mails": 1} {
		if got := pgtest.LookUp[int](t, store, `SELECT count(*) FROM `+table); got != want {
			t.Errorf("%d rows of %s are left, want %d", got, table, want)
		}
	}
	if fresh, err := store.Identities.TakeNonce(t.Context(), pgtest.Fingerprint("fresh"), at); !fresh || err != nil {
		t.Errorf("the nonce that is good still: %t, %v", fresh, err)
	}
}
