package identity_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/network"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	first := pgtest.InsertKey(t, store, ann.ID)
	second := pgtest.InsertKeyOf(t, store, ann.ID, account.KeyRequest{Name: "live", Environment: network.Live, ExpiresIn: time.Hour})
	pgtest.InsertKey(t, store, bob.ID)

	wantKeys(t, store, ann, "made", second, first)
	if !usable(t, store, second) {
		t.Error("a key that was made is not usable, or another than was made")
	}

	for name, err := range map[string]error{
		"another account's": pgtest.DeleteKey(t.Context(), store, bob.ID, second.ID),
		"unknown":           pgtest.DeleteKey(t.Context(), store, ann.ID, uuid.New()),
	} {
		if !errors.Is(err, account.ErrNotFound) {
			t.Errorf("delete, %s: %v", name, err)
		}
	}
	if err := pgtest.DeleteKey(t.Context(), store, ann.ID, second.ID); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, store, ann, "deleted", first)
	if err := pgtest.DeleteKey(t.Context(), store, ann.ID, second.ID); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("delete again: %v", err)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM api_keys WHERE id = $1`, second.ID); n != 1 {
		t.Error("a deleted key's row is gone; intents name it")
	}
}

func TestUpdateKey(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	key := pgtest.InsertKey(t, store, ann.ID)

	later := pgtest.Now().Add(time.Hour)
	got, err := pgtest.UpdateKey(t.Context(), store, ann.ID, key.ID, func(k *account.Key) error {
		k.Name, k.Enabled, k.ExpiresAt, k.UpdatedAt = "renamed", false, &later, later
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := *key
	want.Name, want.Enabled, want.ExpiresAt, want.UpdatedAt = "renamed", false, &later, later
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("answer differs (-want +got):\n%s", diff)
	}
	wantKeys(t, store, ann, "updated", &want)

	refusal := errors.New("no")
	refuse := func(*account.Key) error { return refusal }
	if _, err := pgtest.UpdateKey(t.Context(), store, ann.ID, key.ID, refuse); !errors.Is(err, refusal) {
		t.Errorf("a change that is refused: %v", err)
	}
	unchanged := func(k *account.Key) error { return nil }
	for name, owner := range map[string]uuid.UUID{"another account's": bob.ID, "of no account": uuid.New()} {
		if _, err := pgtest.UpdateKey(t.Context(), store, owner, key.ID, unchanged); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := pgtest.DeleteKey(t.Context(), store, ann.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := pgtest.UpdateKey(t.Context(), store, ann.ID, key.ID, unchanged); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
}

func TestUpdateKey_Concurrent(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	key := pgtest.InsertKey(t, store, ann.ID)
	const writers = 20
	var work sync.WaitGroup
	for range writers {
		work.Go(func() {
			_, err := pgtest.UpdateKey(t.Context(), store, ann.ID, key.ID, func(k *account.Key) error {
				k.Name += "+"
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if n := pgtest.LookUp[int](t, store, `SELECT char_length(name) FROM api_keys`); n != len(key.Name)+writers {
		t.Errorf("%d of %d changes were kept", n-len(key.Name), writers)
	}
}

func TestInsertKey_MaxKeysConcurrent(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	pgtest.InsertKey(t, store, ann.ID)
	pgtest.Exec(t, store, `INSERT INTO api_keys SELECT made.* FROM api_keys k, generate_series(3, $1) n,
		jsonb_populate_record(k, jsonb_build_object('id', gen_random_uuid(), 'hash', sha256(n::text::bytea))) AS made`, account.MaxKeys)
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM api_keys`); n != account.MaxKeys-1 {
		t.Fatalf("%d keys to begin with", n)
	}
	const rivals = 20
	var inserted, refused atomic.Int32
	var work sync.WaitGroup
	for range rivals {
		key := pgtest.NewKey(t, ann.ID, account.KeyRequest{})
		work.Go(func() {
			switch err := pgtest.AddKey(t.Context(), store, key, pgtest.KeyEntry(key, account.KeyCreated)); {
			case err == nil:
				inserted.Add(1)
			case errors.Is(err, account.ErrTooMany):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	work.Wait()
	if inserted.Load() != 1 || refused.Load() != rivals-1 {
		t.Errorf("at 99 keys %d of %d rivals got one, %d were refused", inserted.Load(), rivals, refused.Load())
	}
	pgtest.InsertKey(t, store, bob.ID) // another account has room
	keys, err := store.Identities.Keys(t.Context(), ann.ID)
	if err != nil || len(keys) != account.MaxKeys {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	if err := pgtest.DeleteKey(t.Context(), store, ann.ID, keys[0].ID); err != nil {
		t.Fatal(err)
	}
	pgtest.InsertKey(t, store, ann.ID) // a deleted one makes room
}

func TestUsableKey(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	for name, c := range map[string]struct {
		change string // of key $1 or account $2
		usable bool
	}{
		"as made":               {`SELECT $1, $2`, true},
		"used before":           {`UPDATE api_keys SET last_used_at = now() WHERE id = $1 OR id = $2`, true},
		"disabled":              {`UPDATE api_keys SET enabled = false WHERE id = $1 OR id = $2`, false},
		"deleted":               {`UPDATE api_keys SET deleted_at = now() WHERE id = $1 OR id = $2`, false},
		"of a disabled account": {`UPDATE accounts SET disabled_at = now() WHERE id = $1 OR id = $2`, false},
		"of a deleted account":  {`UPDATE accounts SET deleted_at = now() WHERE id = $1 OR id = $2`, false},
		"of another hash":       {`UPDATE api_keys SET hash = sha256('other') WHERE id = $1 OR id = $2`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := pgtest.SignUp(t, store, strings.ReplaceAll(name, " ", ".")+"@example.com")
			key := pgtest.InsertKey(t, store, owner.ID)
			pgtest.Exec(t, store, c.change, key.ID.String(), owner.ID.String())
			got, _, err := store.Identities.UsableKey(t.Context(), key.Hash, pgtest.Now())
			switch {
			case c.usable && (err != nil || got.ID != key.ID):
				t.Errorf("got %+v, %v", got, err)
			case !c.usable && !errors.Is(err, account.ErrNotFound):
				t.Errorf("got %+v, %v, want account.ErrNotFound", got, err)
			}
		})
	}
}

func TestUsableKey_Expiry(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	key := pgtest.InsertKeyOf(t, store, pgtest.SignUp(t, store, "ann@example.com").ID, account.KeyRequest{ExpiresIn: time.Hour})
	if _, _, err := store.Identities.UsableKey(t.Context(), key.Hash, key.ExpiresAt.Add(-time.Microsecond)); err != nil {
		t.Errorf("just before: %v", err)
	}
	if _, _, err := store.Identities.UsableKey(t.Context(), key.Hash, *key.ExpiresAt); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("at its expiry: %v", err)
	}
}
