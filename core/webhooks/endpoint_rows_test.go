package webhooks_test

import (
	"bytes"
	"testing"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/retention"
	"intents.internal/core/webhooks"
)

// Secrets of the previous key are sealed under the current one, both of an endpoint.
func TestResealWebhooks(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	first, second := make([]byte, 32), bytes.Repeat([]byte{2}, 32)
	before, after := pgtest.WebhookRules(t, first, nil), pgtest.WebhookRules(t, second, first)
	owner := pgtest.SignUp(t, store, "ann@example.com")
	e, secret := pgtest.InsertWebhook(t, store, before, owner)
	rotate := func(e *webhooks.Endpoint) (string, error) {
		_, detail, err := before.Rotate(e, time.Hour, pgtest.Now())
		return detail, err
	}
	if _, err := store.Webhooks.ChangeWebhook(t.Context(), access.OfOperator, e.Owner(), e.ID, new(pgtest.AuditEntry(owner.ID, account.WebhookSecretRotated)), rotate); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if changed, err := store.Webhooks.ResealWebhooks(t.Context(), after.Sealer); err != nil || changed != want {
			t.Errorf("%d changed, want %d; %v", changed, want, err)
		}
	}
	found, err := store.Webhooks.Webhook(t.Context(), e.Owner(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := pgtest.WebhookRules(t, second, nil).Sealer.Secrets(found, pgtest.Now())
	if err != nil || len(secrets) != 2 || secrets[1].Reveal() != secret.Reveal() {
		t.Errorf("%d secrets, %v", len(secrets), err)
	}
}

// Deliveries go after 30 days, and those of a deleted endpoint at once; one that was sent again lately stays.
func TestPrune_Deliveries(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	r := pgtest.WebhookRules(t, make([]byte, 32), nil)
	owner := pgtest.SignUp(t, store, "ann@example.com")
	kept, _ := pgtest.InsertWebhook(t, store, r, owner)
	deleted, _ := pgtest.InsertWebhook(t, store, r, owner)
	insert := func(e *webhooks.Endpoint, position, updated time.Duration) {
		t.Helper()
		pgtest.Exec(t, store, `INSERT INTO deliveries (webhook_id, event_id, position, type, status, attempts, next_attempt_at, response_status, error,
			created_at, updated_at)
			SELECT $1, gen_random_uuid(), $2, 'transfer.created', 'delivered', 1, NULL, 200, NULL, now(), $3`,
			e.ID, pgtest.Now().Add(-position).UnixMicro(), pgtest.Now().Add(-updated))
	}
	const day = 24 * time.Hour
	insert(kept, 31*day, 31*day)
	insert(kept, 31*day, day)
	insert(kept, 29*day, 29*day)
	insert(deleted, day, day)
	if err := store.Webhooks.DeleteWebhook(t.Context(), access.OfOperator, deleted.Owner(), deleted.ID, pgtest.AuditEntry(owner.ID, account.WebhookDeleted)); err != nil {
		t.Fatal(err)
	}
	removed, err := store.Retention.Prune(t.Context(), pgtest.Now(), retention.Retention{})
	if err != nil || removed["deliveries"] != 2 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if left := pgtest.LookUp[int](t, store, "SELECT count(*) FROM deliveries WHERE webhook_id = $1", kept.ID); left != 2 {
		t.Errorf("%d deliveries are left", left)
	}
}

// An ended account loses its endpoints and their queue at once, so that nothing of them is left to erase.
func TestEraseAccount_Webhooks(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	r := pgtest.WebhookRules(t, make([]byte, 32), nil)
	ended, other := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	for _, owner := range []*account.Account{ended, other} {
		e, _ := pgtest.InsertWebhook(t, store, r, owner)
		if _, err := store.Webhooks.TestWebhook(t.Context(), access.OfOperator, e.Owner(), e.ID, feed.TypeWebhookTest); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Exec(t, store, "UPDATE accounts SET deleted_at = now() WHERE id = $1", ended.ID)
	erased, err := store.Retention.EraseAccount(t.Context(), ended.ID, pgtest.Now())
	if err != nil || erased["webhook_quotas"] != 1 {
		t.Errorf("erased %v, %v", erased, err)
	}
	for _, table := range []string{"webhooks", "deliveries"} {
		if left := pgtest.LookUp[int](t, store, "SELECT count(*) FROM "+table); left != 1 {
			t.Errorf("%s has %d rows, want that of the other account", table, left)
		}
	}
}
