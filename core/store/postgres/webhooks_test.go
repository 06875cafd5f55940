package postgres_test

import (
	"bytes"
	"testing"
	"time"

	"intents.internal/core/events/event"
	"intents.internal/core/events/webhook"
	"intents.internal/core/identity/account"
	"intents.internal/core/outbound"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/network"
)

func webhookRules(t *testing.T, current, previous []byte) *webhook.Rules {
	t.Helper()
	sealer, err := webhook.NewSealer(current, previous)
	if err != nil {
		t.Fatal(err)
	}
	return &webhook.Rules{Networks: outbound.NewNetworks(nil), Sealer: sealer}
}

// insertWebhook stores a test endpoint of an account.
func insertWebhook(t *testing.T, store *postgres.Store, r *webhook.Rules, owner *account.Account) (*webhook.Endpoint, webhook.Secret) {
	t.Helper()
	e, secret, err := r.New(event.Owner{AccountID: owner.ID, Environment: network.Test}, webhook.Draft{URL: "https://example.com"}, now())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.InsertWebhook(t.Context(), e, auditEntry(owner.ID, account.WebhookCreated), [32]byte{}); err != nil {
		t.Fatal(err)
	}
	return e, secret
}

// Secrets of the previous key are sealed under the current one, both of an endpoint.
func TestResealWebhooks(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	first, second := make([]byte, 32), bytes.Repeat([]byte{2}, 32)
	before, after := webhookRules(t, first, nil), webhookRules(t, second, first)
	owner := insertAccount(t, store, "ann@example.com")
	e, secret := insertWebhook(t, store, before, owner)
	rotate := func(e *webhook.Endpoint) (string, error) {
		_, _, err := before.Rotate(e, time.Hour, now())
		return "", err
	}
	if _, err := store.ChangeWebhook(t.Context(), e.Owner(), e.ID, auditEntry(owner.ID, account.WebhookSecretRotated), rotate); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if changed, err := store.ResealWebhooks(t.Context(), after.Sealer); err != nil || changed != want {
			t.Errorf("%d changed, want %d; %v", changed, want, err)
		}
	}
	found, err := store.Webhook(t.Context(), e.Owner(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := webhookRules(t, second, nil).Sealer.Secrets(found, now())
	if err != nil || len(secrets) != 2 || secrets[1].Reveal() != secret.Reveal() {
		t.Errorf("%d secrets, %v", len(secrets), err)
	}
}

// Deliveries go after 30 days, and those of a deleted endpoint at once; one that was sent again lately stays.
func TestPrune_Deliveries(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	r := webhookRules(t, make([]byte, 32), nil)
	owner := insertAccount(t, store, "ann@example.com")
	kept, _ := insertWebhook(t, store, r, owner)
	deleted, _ := insertWebhook(t, store, r, owner)
	insert := func(e *webhook.Endpoint, position, updated time.Duration) {
		t.Helper()
		pgtest.Exec(t, store, `INSERT INTO deliveries SELECT $1, gen_random_uuid(), $2, 'transfer.created', 'delivered', 1, NULL, 200, NULL, now(), $3`,
			e.ID, now().Add(-position).UnixMicro(), now().Add(-updated))
	}
	const day = 24 * time.Hour
	insert(kept, 31*day, 31*day)
	insert(kept, 31*day, day)
	insert(kept, 29*day, 29*day)
	insert(deleted, day, day)
	if err := store.DeleteWebhook(t.Context(), deleted.Owner(), deleted.ID, auditEntry(owner.ID, account.WebhookDeleted)); err != nil {
		t.Fatal(err)
	}
	removed, err := store.Prune(t.Context(), now(), postgres.Retention{})
	if err != nil || removed["deliveries"] != 2 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if left := pgtest.LookUp[int](t, store, "SELECT count(*) FROM deliveries WHERE webhook_id = $1", kept.ID); left != 2 {
		t.Errorf("%d deliveries are left", left)
	}
}

// An ended account loses its endpoints and their deliveries.
func TestEraseAccount_Webhooks(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	r := webhookRules(t, make([]byte, 32), nil)
	ended, other := insertAccount(t, store, "ann@example.com"), insertAccount(t, store, "bob@example.com")
	for _, owner := range []*account.Account{ended, other} {
		e, _ := insertWebhook(t, store, r, owner)
		if _, err := store.TestWebhook(t.Context(), e.Owner(), e.ID); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Exec(t, store, "UPDATE accounts SET deleted_at = now() WHERE id = $1", ended.ID)
	erased, err := store.EraseAccount(t.Context(), ended.ID, now())
	if err != nil || erased["webhooks"] != 1 || erased["deliveries"] != 1 {
		t.Errorf("erased %v, %v", erased, err)
	}
	if left := pgtest.LookUp[int](t, store, "SELECT count(*) FROM webhooks JOIN deliveries ON webhook_id = id"); left != 1 {
		t.Errorf("%d are left", left)
	}
}
