package identity_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/apikey"
)

func TestKey_Restrictions(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	networks, err := account.ParseNetworks([]string{
		"0.0.0.0/0", "10.0.0.0/8", "192.0.2.7", "::/0", "2001:db8::/32", "::1", "::ffff:192.0.2.8", "64:ff9b::192.0.2.33/128",
	})
	if err != nil {
		t.Fatal(err)
	}
	key := pgtest.InsertKeyOf(t, store, ann.ID, account.KeyRequest{Scopes: apikey.IntentsRead | apikey.Webhooks, Networks: networks})
	stored := func(when string) {
		t.Helper()
		got, _, err := store.Identities.UsableKey(t.Context(), key.Hash, pgtest.Now())
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
	if key, err = pgtest.UpdateKey(t.Context(), store, ann.ID, key.ID, func(k *account.Key) error {
		k.Scopes, k.Networks = apikey.AllScopes, nil
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	stored("changed")
}
