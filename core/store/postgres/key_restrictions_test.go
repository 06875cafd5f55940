package postgres_test

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/apikey"
)

func TestKey_Restrictions(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := insertAccount(t, store, "ann@example.com")
	networks, err := account.ParseNetworks([]string{
		"0.0.0.0/0", "10.0.0.0/8", "192.0.2.7", "::/0", "2001:db8::/32", "::1", "::ffff:192.0.2.8", "64:ff9b::192.0.2.33/128",
	})
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t, ann.ID, account.KeyRequest{Scopes: apikey.IntentsRead | apikey.Webhooks, Networks: networks})
	if err := addKey(t.Context(), store, key, keyEntry(key, account.KeyCreated)); err != nil {
		t.Fatal(err)
	}
	stored := func(when string) {
		t.Helper()
		got, _, err := store.UsableKey(t.Context(), key.Hash, now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(key, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	stored("created")
	_, next, err := rotate(t, store, key, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	key = next
	stored("rotated")
	if key, err = updateKey(t.Context(), store, ann.ID, key.ID, func(k *account.Key) error {
		k.Scopes, k.Networks = apikey.AllScopes, nil
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	stored("changed")
}

// The previous release inserts keys without scopes and networks. What no core could read is not stored, by any client of the database.
func TestKey_RestrictionsByHand(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := insertAccount(t, store, "ann@example.com")
	id := uuid.New()
	pgtest.Exec(t, store, `INSERT INTO api_keys (id, account_id, name, hash, start, environment, enabled, limit_requests, limit_period_seconds, created_at, updated_at)
		VALUES ($1, $2, 'old', sha256('old'), 'sk_test_abcd', 'test', true, 50, 60, now(), now())`, id, ann.ID)
	if key, err := store.Key(t.Context(), ann.ID, id); err != nil || key.Restricted() {
		t.Errorf("%+v, %v", key, err)
	}
	for _, set := range []string{
		`scopes = '{}'`, `scopes = '{intents:delete}'`, `scopes = '{webhooks,NULL}'`, `scopes = NULL`,
		`networks = NULL`, `networks = '{NULL}'`, `networks = '{10.0.0.1/8}'`, `networks = '{any}'`,
		`networks = (SELECT array_agg(('10.0.0.' || n)::cidr) FROM generate_series(1, 33) AS n)`,
	} {
		if _, err := store.Pool().ExecContext(t.Context(), `UPDATE api_keys SET `+set); err == nil {
			t.Errorf("%s is stored", set)
		}
	}
}

// Without the columns a restricted key would do everything, so going back disables it.
func TestKey_RestrictionsDown(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := insertAccount(t, store, "ann@example.com")
	for hash, request := range map[string]account.KeyRequest{
		"free": {}, "scopes": {Scopes: apikey.IntentsRead}, "networks": {Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	} {
		request.Name = hash
		key := newKey(t, ann.ID, request)
		if err := addKey(t.Context(), store, key, keyEntry(key, account.KeyCreated)); err != nil {
			t.Fatal(err)
		}
	}
	down, err := os.ReadFile("migrations/20261123130000_key_restrictions.tx.down.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, cursor := changes(t, store, "")
	pgtest.Exec(t, store, string(down))
	if got := pgtest.LookUp[string](t, store, `SELECT string_agg(name, ',') FROM api_keys WHERE enabled`); got != "free" {
		t.Errorf("enabled are %s", got)
	}
	if hashes, _ := changes(t, store, cursor); len(hashes) != 2 {
		t.Errorf("gateways are told of %d keys", len(hashes))
	}
}
