package identity_test

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/retention"
	"intents.internal/core/rooms"
	"intents.internal/pkg/network"
)

// rotate rotates a key and returns it as it then is, and the next.
func rotate(t *testing.T, store *rooms.Rooms, k *account.Key, grace time.Duration) (old, next *account.Key, err error) {
	t.Helper()
	err = store.Identities.InTx(t.Context(), postgres.NoTurn, func(ctx context.Context, tx identity.Tx) error {
		if old, err = tx.LockKey(ctx, k.AccountID, k.ID); err != nil {
			return err
		}
		if next, _, err = old.Rotate(grace, pgtest.Now()); err != nil {
			return err
		}
		if err := tx.ReplaceKey(ctx, tx.OperatorRights(), old, next); err != nil {
			return err
		}
		return tx.Audit(ctx, pgtest.KeyEntry(old, account.KeyRotated))
	})
	return old, next, err
}

// wantKeys compares what an account is shown, newest first.
func wantKeys(t *testing.T, store *rooms.Rooms, of *account.Account, when string, want ...*account.Key) {
	t.Helper()
	got, err := store.Identities.Keys(t.Context(), of.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: keys differ (-want +got):\n%s", when, diff)
	}
}

// usable tells whether gateways take a key.
func usable(t *testing.T, store *rooms.Rooms, k *account.Key) bool {
	t.Helper()
	got, _, err := store.Identities.UsableKey(t.Context(), k.Hash, pgtest.Now())
	if err != nil && !errors.Is(err, account.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil && cmp.Equal(k, got)
}

func TestReplaceKey_WithoutGrace(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	key := pgtest.InsertKeyOf(t, store, ann.ID, account.KeyRequest{Name: "live", Environment: network.Live, ExpiresIn: time.Hour})
	pgtest.Exec(t, store, `UPDATE api_keys SET last_used_at = now(), limit_requests = 7`)
	key.Limit.Requests = 7
	_, cursor := pgtest.Changes(t, store, "")

	_, second, err := rotate(t, store, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantKeys(t, store, ann, "rotated", second)
	told, _ := pgtest.Changes(t, store, cursor)
	want := []string{hex.EncodeToString(key.Hash[:]), hex.EncodeToString(second.Hash[:])}
	slices.Sort(told)
	slices.Sort(want)
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("gateways are told of other keys (-want +got):\n%s", diff)
	}
	_, third, err := rotate(t, store, second, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantKeys(t, store, ann, "rotated twice", third)
	if usable(t, store, key) || usable(t, store, second) || !usable(t, store, third) {
		t.Error("not the third key alone is usable")
	}
	if third.LimitBucket != key.ID || third.Limit != key.Limit || !third.ExpiresAt.Equal(*key.ExpiresAt) || third.LastUsedAt != nil {
		t.Errorf("third key %+v of the first %+v", third, key)
	}
	if n := pgtest.LookUp[int](t, store, `SELECT count(*) FROM api_keys WHERE deleted_at IS NOT NULL AND limit_bucket = $1`, key.ID); n != 2 {
		t.Errorf("%d rows of rotated keys, want 2: intents name them", n)
	}
}

func TestReplaceKey_WithGrace(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	expired := pgtest.NewKey(t, ann.ID, account.KeyRequest{ExpiresIn: time.Second})
	expired.ExpiresAt = new(pgtest.Now().Add(-time.Hour))
	if err := pgtest.AddKey(t.Context(), store, expired, pgtest.KeyEntry(expired, account.KeyCreated)); err != nil {
		t.Fatal(err)
	}
	key := pgtest.InsertKey(t, store, ann.ID)
	_, cursor := pgtest.Changes(t, store, "")

	old, next, err := rotate(t, store, key, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if old.RotatedAt == nil || old.ExpiresAt == nil || next.LimitBucket != key.ID {
		t.Fatalf("old %+v, next %+v", old, next)
	}
	wantKeys(t, store, ann, "in the grace", next, old, expired)
	if !usable(t, store, old) || !usable(t, store, next) {
		t.Error("not both keys are usable in the grace")
	}
	if told, _ := pgtest.Changes(t, store, cursor); len(told) != 2 {
		t.Errorf("gateways are told of %d keys, want both: the old one has an end now", len(told))
	}
	if got, err := store.Identities.Key(t.Context(), ann.ID, key.ID); err != nil || !cmp.Equal(old, got) {
		t.Errorf("Key = %+v, %v", got, err)
	}
	for _, grace := range []time.Duration{0, time.Minute} {
		if _, _, err := rotate(t, store, key, grace); !errors.Is(err, account.ErrKeyRotated) {
			t.Errorf("rotate the old key again: %v", err)
		}
	}

	pgtest.Exec(t, store, `UPDATE api_keys SET expires_at = now() WHERE id = $1`, key.ID)
	gone := func(when string) {
		t.Helper()
		wantKeys(t, store, ann, when, next, expired)
		_, byID := store.Identities.Key(t.Context(), ann.ID, key.ID)
		_, updated := pgtest.UpdateKey(t.Context(), store, ann.ID, key.ID, func(k *account.Key) error {
			return nil
		})
		_, _, rotated := rotate(t, store, key, 0)
		for what, err := range map[string]error{
			"get": byID, "update": updated, "rotate": rotated, "delete": pgtest.DeleteKey(t.Context(), store, ann.ID, key.ID),
		} {
			if !errors.Is(err, account.ErrNotFound) {
				t.Errorf("%s: %s: %v", when, what, err)
			}
		}
	}
	gone("after the grace")
	if _, err := store.Retention.Prune(t.Context(), pgtest.Now(), retention.Retention{}); err != nil {
		t.Fatal(err)
	}
	gone("pruned")
	const deleted = `SELECT coalesce(string_agg(id::text, ','), '') FROM api_keys WHERE deleted_at IS NOT NULL`
	if got := pgtest.LookUp[string](t, store, deleted); got != key.ID.String() {
		t.Errorf("pruning deleted %q, want %s", got, key.ID)
	}
}

func TestReplaceKey_MaxKeys(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	key := pgtest.InsertKey(t, store, ann.ID)
	pgtest.Exec(t, store, `INSERT INTO api_keys SELECT made.* FROM api_keys k, generate_series(2, $1) n,
		jsonb_populate_record(k, jsonb_build_object('id', gen_random_uuid(), 'hash', sha256(n::text::bytea))) AS made`, account.MaxKeys)
	if _, _, err := rotate(t, store, key, time.Hour); !errors.Is(err, account.ErrTooMany) {
		t.Errorf("a grace at %d keys: %v", account.MaxKeys, err)
	}
	if got, err := store.Identities.Key(t.Context(), ann.ID, key.ID); err != nil || !cmp.Equal(key, got) {
		t.Errorf("the refused rotation left %+v, %v", got, err)
	}
	_, next, err := rotate(t, store, key, 0)
	if err != nil {
		t.Fatalf("without a grace: %v", err)
	}
	full := pgtest.NewKey(t, ann.ID, account.KeyRequest{})
	if err := pgtest.AddKey(t.Context(), store, full, pgtest.KeyEntry(full, account.KeyCreated)); !errors.Is(err, account.ErrTooMany) {
		t.Errorf("one more key: %v", err)
	}
	pgtest.Exec(t, store, `UPDATE api_keys SET rotated_at = now(), expires_at = now() WHERE id NOT IN ($1, $2) AND id IN (
		SELECT id FROM api_keys WHERE deleted_at IS NULL AND id <> $1 LIMIT 1)`, next.ID, key.ID)
	pgtest.InsertKey(t, store, ann.ID) // a key whose grace is over makes room
}

func TestReplaceKey_Concurrent(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	for _, grace := range []time.Duration{0, time.Hour} {
		key := pgtest.InsertKey(t, store, ann.ID)
		const rivals = 12
		var winners atomic.Int32
		var work sync.WaitGroup
		for range rivals {
			work.Go(func() {
				switch _, _, err := rotate(t, store, key, grace); {
				case err == nil:
					winners.Add(1)
				case !errors.Is(err, account.ErrNotFound) && !errors.Is(err, account.ErrKeyRotated):
					t.Error(err)
				}
			})
		}
		work.Wait()
		if winners.Load() != 1 {
			t.Errorf("grace %s: %d of %d rivals rotated the key", grace, winners.Load(), rivals)
		}
	}
}
