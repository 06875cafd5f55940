package postgres_test

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/account"
	"intents.internal/core/postgres"
	"intents.internal/core/postgres/pgtest"
)

func record(t *testing.T, store *postgres.Store, report uuid.UUID, usages ...account.Usage) {
	t.Helper()
	if err := store.RecordUsage(t.Context(), report, usages, now()); err != nil {
		t.Error(err)
	}
}

func wantUsage(t *testing.T, store *postgres.Store, of *account.Account, since time.Time, want ...account.Usage) {
	t.Helper()
	got, err := store.Usage(t.Context(), of.ID, since)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append([]account.Usage{}, want...), got); diff != "" {
		t.Errorf("usage of %s differs (-want +got):\n%s", of.Email, diff)
	}
}

func lastUse(t *testing.T, store *postgres.Store, k *account.Key) *time.Time {
	t.Helper()
	got, err := store.Key(t.Context(), k.AccountID, k.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got.LastUsedAt
}

func TestRecordUsage(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := insertAccount(t, store, "ann@example.com"), insertAccount(t, store, "bob@example.com")
	first, second, bobs := insertKey(t, store, ann.ID), insertKey(t, store, ann.ID), insertKey(t, store, bob.ID)
	_, cursor := changes(t, store, "")
	minute := now().Truncate(time.Minute).Add(-10 * time.Minute)
	at := minute.Add(3 * time.Second)

	report := uuid.New()
	for range 3 { // as a gateway does that lost the answer
		record(
			t, store, report,
			account.Usage{KeyID: second.ID, Minute: minute, Accepted: 1, Limited: 2, Refused: 3, LastUsedAt: at},
			account.Usage{KeyID: first.ID, Minute: minute, Accepted: 10},
			account.Usage{KeyID: bobs.ID, Minute: minute, Refused: 5},
			account.Usage{KeyID: uuid.New(), Minute: minute, Accepted: 7, LastUsedAt: at},
			account.Usage{KeyID: second.ID, Minute: minute.Add(time.Minute), Accepted: 4},
			account.Usage{KeyID: second.ID, Minute: minute, Accepted: 100, LastUsedAt: at.Add(-time.Second)},
		)
	}
	if err := store.DeleteKey(t.Context(), ann.ID, first.ID, browser, now()); err != nil {
		t.Fatal(err)
	}
	record(t, store, uuid.New(), account.Usage{KeyID: first.ID, Minute: minute, Accepted: 1, Limited: 1})
	wantUsage(
		t, store, ann, minute,
		account.Usage{KeyID: first.ID, Minute: minute, Accepted: 11, Limited: 1},
		account.Usage{KeyID: second.ID, Minute: minute, Accepted: 101, Limited: 2, Refused: 3},
		account.Usage{KeyID: second.ID, Minute: minute.Add(time.Minute), Accepted: 4},
	)
	wantUsage(t, store, ann, minute.Add(time.Second), account.Usage{KeyID: second.ID, Minute: minute.Add(time.Minute), Accepted: 4})
	wantUsage(t, store, bob, minute, account.Usage{KeyID: bobs.ID, Minute: minute, Refused: 5})
	wantUsage(t, store, bob, now())
	if got := lastUse(t, store, second); got == nil || !got.Equal(at) {
		t.Errorf("last used at %v, want %s", got, at)
	}
	if got := lastUse(t, store, bobs); got != nil {
		t.Errorf("a key whose last use nobody told was used at %s", got)
	}
	told, _ := changes(t, store, cursor)
	if len(told) != 1 { // the deletion
		t.Errorf("gateways must forget %d keys: usage is no change", len(told))
	}
}

func TestLastUseOnlyGrows(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	key := insertKey(t, store, insertAccount(t, store, "ann@example.com").ID)
	at := now()
	for _, c := range []struct{ told, want time.Time }{
		{at.Add(-time.Hour), at.Add(-time.Hour)},
		{at.Add(-2 * time.Hour), at.Add(-time.Hour)},
		{time.Time{}, at.Add(-time.Hour)},
		{at.Add(-time.Minute), at.Add(-time.Minute)},
		{at.Add(24 * time.Hour), at}, // a gateway whose clock is wrong
	} {
		usage := account.Usage{KeyID: key.ID, Minute: at.Truncate(time.Minute), Accepted: 1, LastUsedAt: c.told}
		if err := store.RecordUsage(t.Context(), uuid.New(), []account.Usage{usage}, at); err != nil {
			t.Fatal(err)
		}
		if got := lastUse(t, store, key); got == nil || !got.Equal(c.want) {
			t.Errorf("told %s: last used at %v, want %s", c.told, got, c.want)
		}
	}
}

func TestUsageReportIsStoredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := insertAccount(t, store, "ann@example.com")
	key, report, minute := insertKey(t, store, ann.ID), uuid.New(), now().Truncate(time.Minute)
	good := account.Usage{KeyID: key.ID, Minute: minute, Accepted: 1, LastUsedAt: minute}
	for name, bad := range map[string]account.Usage{
		"a negative count":   {KeyID: key.ID, Minute: minute.Add(time.Minute), Limited: -1},
		"half a minute":      {KeyID: key.ID, Minute: minute.Add(30 * time.Second)},
		"half a millisecond": {KeyID: key.ID, Minute: minute.Add(500 * time.Microsecond)},
	} {
		if err := store.RecordUsage(t.Context(), report, []account.Usage{good, bad}, now()); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
	if got := lastUse(t, store, key); got != nil {
		t.Errorf("a refused report moved the last use to %s", got)
	}
	record(t, store, report, good)
	wantUsage(t, store, ann, minute, account.Usage{KeyID: key.ID, Minute: minute, Accepted: 1})
}

// Many gateways report on the same keys, in the same minutes and in others, each in an order of its own and each report
// several times at once.
func TestRecordUsageConcurrently(t *testing.T) {
	t.Parallel()
	const gateways, reports, repeats, keys = 6, 10, 2, account.MaxKeys
	store := pgtest.New(t)
	ann := insertAccount(t, store, "ann@example.com")
	made := make([]*account.Key, keys)
	for i := range made {
		made[i] = insertKey(t, store, ann.ID)
	}
	minute := now().Truncate(time.Minute).Add(-reports * time.Minute)
	at := func(n int) time.Time { return minute.Add(time.Duration(n) * time.Millisecond) }
	var work sync.WaitGroup
	for gateway := range gateways {
		random := rand.New(rand.NewPCG(1, uint64(gateway)))
		for n := range reports {
			usages := make([]account.Usage, keys)
			for to, from := range random.Perm(keys) {
				usages[to] = account.Usage{
					KeyID: made[from].ID, Minute: minute.Add(time.Duration(n) * time.Minute),
					Accepted: 1, Limited: 10, Refused: 100, LastUsedAt: at(gateway*reports + n),
				}
			}
			var id uuid.UUID
			binary.BigEndian.PutUint64(id[:], uint64(gateway*reports+n))
			for range repeats {
				work.Go(func() { record(t, store, id, usages...) })
			}
		}
	}
	work.Wait()
	var want []account.Usage
	last := at(gateways*reports - 1)
	for i, key := range made {
		for n := range reports {
			want = append(want, account.Usage{
				KeyID: key.ID, Minute: minute.Add(time.Duration(n) * time.Minute),
				Accepted: gateways, Limited: 10 * gateways, Refused: 100 * gateways,
			})
		}
		if got := lastUse(t, store, key); got == nil || !got.Equal(last) {
			t.Errorf("key %d was last used at %v, want %s", i, got, last)
		}
	}
	wantUsage(t, store, ann, minute, want...)
}
