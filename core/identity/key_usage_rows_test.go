package identity_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
)

func record(t *testing.T, store *rooms.Rooms, report uuid.UUID, usages ...account.Usage) {
	t.Helper()
	if _, err := store.Identities.RecordUsage(t.Context(), report, usages, pgtest.Now()); err != nil {
		t.Error(err)
	}
}

func wantUsage(t *testing.T, store *rooms.Rooms, of *account.Account, since time.Time, want ...account.Usage) {
	t.Helper()
	rows, err := store.Pool().QueryContext(t.Context(), `SELECT key_id, minute, accepted, limited, refused FROM key_usage
		WHERE account_id = $1 AND minute >= $2 ORDER BY key_id, minute`, of.ID, since)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := []account.Usage{}
	for rows.Next() {
		var u account.Usage
		if err := rows.Scan(&u.KeyID, &u.Minute, &u.Accepted, &u.Limited, &u.Refused); err != nil {
			t.Fatal(err)
		}
		u.Minute = u.Minute.UTC()
		got = append(got, u)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append([]account.Usage{}, want...), got); diff != "" {
		t.Errorf("usage of %s differs (-want +got):\n%s", of.Email, diff)
	}
}

func lastUse(t *testing.T, store *rooms.Rooms, k *account.Key) *time.Time {
	t.Helper()
	got, err := store.Identities.Key(t.Context(), k.AccountID, k.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got.LastUsedAt
}

func TestRecordUsage(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann, bob := pgtest.SignUp(t, store, "ann@example.com"), pgtest.SignUp(t, store, "bob@example.com")
	first, second, bobs := pgtest.InsertKey(t, store, ann.ID), pgtest.InsertKey(t, store, ann.ID), pgtest.InsertKey(t, store, bob.ID)
	_, cursor := pgtest.Changes(t, store, "")
	minute := pgtest.Now().Truncate(time.Minute).Add(-10 * time.Minute)
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
	if err := pgtest.DeleteKey(t.Context(), store, ann.ID, first.ID); err != nil {
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
	wantUsage(t, store, bob, pgtest.Now())
	if got := lastUse(t, store, second); got == nil || !got.Equal(at) {
		t.Errorf("last used at %v, want %s", got, at)
	}
	if got := lastUse(t, store, bobs); got != nil {
		t.Errorf("a key whose last use nobody told was used at %s", got)
	}
	told, _ := pgtest.Changes(t, store, cursor)
	if len(told) != 1 { // the deletion
		t.Errorf("gateways must forget %d keys: usage is no change", len(told))
	}
}

func TestRecordUsage_LastUse(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	key := pgtest.InsertKey(t, store, pgtest.SignUp(t, store, "ann@example.com").ID)
	at := pgtest.Now()
	for _, c := range []struct{ told, want time.Time }{
		{at.Add(-time.Hour), at.Add(-time.Hour)},
		{at.Add(-2 * time.Hour), at.Add(-time.Hour)},
		{time.Time{}, at.Add(-time.Hour)},
		{at.Add(-time.Minute), at.Add(-time.Minute)},
		{at.Add(24 * time.Hour), at}, // a gateway whose clock is wrong
	} {
		usage := account.Usage{KeyID: key.ID, Minute: at.Truncate(time.Minute), Accepted: 1, LastUsedAt: c.told}
		if _, err := store.Identities.RecordUsage(t.Context(), uuid.New(), []account.Usage{usage}, at); err != nil {
			t.Fatal(err)
		}
		if got := lastUse(t, store, key); got == nil || !got.Equal(c.want) {
			t.Errorf("told %s: last used at %v, want %s", c.told, got, c.want)
		}
	}
}

func TestRecordUsage_Atomic(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	key, report, minute := pgtest.InsertKey(t, store, ann.ID), uuid.New(), pgtest.Now().Truncate(time.Minute)
	good := account.Usage{KeyID: key.ID, Minute: minute, Accepted: 1, LastUsedAt: minute}
	for name, bad := range map[string]account.Usage{
		"a negative count":   {KeyID: key.ID, Minute: minute.Add(time.Minute), Limited: -1},
		"half a minute":      {KeyID: key.ID, Minute: minute.Add(30 * time.Second)},
		"half a millisecond": {KeyID: key.ID, Minute: minute.Add(500 * time.Microsecond)},
	} {
		if _, err := store.Identities.RecordUsage(t.Context(), report, []account.Usage{good, bad}, pgtest.Now()); err == nil {
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
func TestRecordUsage_Concurrent(t *testing.T) {
	t.Parallel()
	const gateways, reports, repeats, keys = 6, 10, 2, account.MaxKeys
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	made := make([]*account.Key, keys)
	for i := range made {
		made[i] = pgtest.InsertKey(t, store, ann.ID)
	}
	minute := pgtest.Now().Truncate(time.Minute).Add(-reports * time.Minute)
	at := func(n int) time.Time { return minute.Add(time.Duration(n) * time.Millisecond) }
	var work errgroup.Group
	work.SetLimit(pgtest.Patient().MaxConnections) // others would wait for a connection for too long
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
				work.Go(func() error { record(t, store, id, usages...); return nil })
			}
		}
	}
	_ = work.Wait()
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

func TestKeyUsage(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := pgtest.SignUp(t, store, "ann@example.com")
	key, other := pgtest.InsertKey(t, store, ann.ID), pgtest.InsertKey(t, store, ann.ID)
	since := pgtest.Now().Truncate(time.Hour).Add(-2*time.Hour + 7*time.Minute) // no multiple of the interval
	at := func(k *account.Key, minute int, accepted, limited, refused int64) account.Usage {
		return account.Usage{KeyID: k.ID, Minute: since.Add(time.Duration(minute) * time.Minute), Accepted: accepted, Limited: limited, Refused: refused}
	}
	record(t, store, uuid.New(), at(key, -1, 9, 9, 9), at(key, 0, 1, 2, 3), at(key, 7, 4, 2, 1), at(key, 14, 2, 2, 3),
		at(key, 15, 5, 0, 0), at(key, 45, 1, 0, 0), at(key, 46, 0, 8, 0), at(other, 7, 100, 0, 0))
	want := []account.UsageInterval{
		{From: since, Accepted: 7, Limited: 6, Refused: 7, Busiest: at(key, 7, 4, 2, 1)},
		{From: since.Add(15 * time.Minute), Accepted: 5, Busiest: at(key, 15, 5, 0, 0)},
		{From: since.Add(45 * time.Minute), Accepted: 1, Limited: 8, Busiest: at(key, 46, 0, 8, 0)},
	}
	got, err := store.Identities.KeyUsage(t.Context(), ann.ID, key.ID, since, 15*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, ids := range map[string][2]uuid.UUID{"another account": {uuid.New(), key.ID}, "no key": {ann.ID, uuid.New()}} {
		if got, err := store.Identities.KeyUsage(t.Context(), ids[0], ids[1], since, time.Minute); err != nil || len(got) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// What a key's page reads does not grow with the account's other keys.
func TestKeyUsage_ReadsOneKey(t *testing.T) {
	t.Parallel()
	const keys, minutes = account.MaxKeys, 25 * 60
	store := pgtest.New(t)
	owner, key, since := uuid.New(), uuid.New(), pgtest.Now().Truncate(time.Hour).Add(-24*time.Hour)
	pgtest.Exec(t, store, `INSERT INTO key_usage (account_id, minute, key_id, accepted, limited, refused)
		SELECT $1, $3::timestamptz + m * interval '1 minute',
		CASE k WHEN 0 THEN $2 ELSE gen_random_uuid() END, 40, 2, 1 FROM generate_series(0, $4::int - 1) m, generate_series(0, $5::int - 1) k`,
		owner, key, since, minutes, keys)
	pgtest.Exec(t, store, "VACUUM ANALYZE key_usage")
	read := func() int64 {
		pgtest.Exec(t, store, "SELECT pg_stat_force_next_flush()")
		return pgtest.LookUp[int64](t, store, "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'key_usage_key'")
	}
	store.Pool().SetMaxOpenConns(1) // its own statistics are told when it is asked to
	before := read()
	got, err := store.Identities.KeyUsage(t.Context(), owner, key, since, 15*time.Minute)
	if err != nil || len(got) != minutes/15 {
		t.Fatalf("%d intervals, %v, want %d", len(got), err, minutes/15)
	}
	if after := read(); after-before != minutes {
		t.Errorf("%d rows of the index were read, want the key's %d", after-before, minutes)
	}
}
