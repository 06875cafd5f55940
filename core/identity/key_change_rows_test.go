package identity_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/apikey"
)

func TestKeyChanges_EachChangeOnce(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	const email = "ann@example.com"
	ann := pgtest.SignUp(t, store, email)
	bystander := pgtest.InsertKey(t, store, pgtest.SignUp(t, store, "bystander@example.com").ID)
	key := pgtest.InsertKey(t, store, ann.ID)
	gone := pgtest.InsertKey(t, store, ann.ID)
	created := pgtest.NewKey(t, ann.ID, account.KeyRequest{})
	hashOf := func(k *account.Key) string { return hex.EncodeToString(k.Hash[:]) }
	other := fmt.Sprintf("%x", pgtest.Fingerprint("other"))
	sql := func(statement string) func() error {
		return func() error {
			_, err := store.Pool().ExecContext(t.Context(), statement, key.ID)
			return err
		}
	}
	update := func(change func(*account.Key)) func() error {
		return func() error {
			_, err := pgtest.UpdateKey(t.Context(), store, ann.ID, key.ID, func(k *account.Key) error {
				change(k)
				return nil
			})
			return err
		}
	}
	soon := pgtest.Now().Add(time.Minute)

	hashes, cursor := pgtest.Changes(t, store, "")
	if len(hashes) != 0 || cursor == "" {
		t.Fatalf("a new reader gets %q and cursor %q", hashes, cursor)
	}
	for _, c := range []struct {
		name   string
		change func() error
		want   []string
	}{
		{"nothing", func() error { return nil }, nil},
		{"created", func() error {
			return pgtest.AddKey(t.Context(), store, created, pgtest.KeyEntry(created, account.KeyCreated))
		}, []string{hashOf(created)}},
		{"disabled", update(func(k *account.Key) { k.Enabled = false }), []string{hashOf(key)}},
		{"enabled", update(func(k *account.Key) { k.Enabled = true }), []string{hashOf(key)}},
		{"expiry moved", update(func(k *account.Key) { k.ExpiresAt = &soon }), []string{hashOf(key)}},
		{"scopes", update(func(k *account.Key) { k.Scopes = apikey.Webhooks }), []string{hashOf(key)}},
		{"networks", update(func(k *account.Key) { k.Networks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }), []string{hashOf(key)}},
		{"deleted", func() error { return pgtest.DeleteKey(t.Context(), store, ann.ID, gone.ID) }, []string{hashOf(gone)}},
		{"account disabled", func() error { return store.Identities.DisableAccount(t.Context(), email, pgtest.Browser, pgtest.Now()) }, []string{hashOf(key), hashOf(created)}},
		{"account enabled", func() error { return store.Identities.EnableAccount(t.Context(), email, pgtest.Browser, pgtest.Now()) }, []string{hashOf(key), hashOf(created)}},

		{"account's limit", func() error {
			return store.Identities.SetAccountLimit(t.Context(), email, &account.Limit{Requests: 7, Period: time.Second}, pgtest.Browser, pgtest.Now())
		}, []string{hashOf(key), hashOf(created)}},
		{"account's default limit", func() error {
			return store.Identities.SetAccountLimit(t.Context(), email, nil, pgtest.Browser, pgtest.Now())
		}, []string{hashOf(key), hashOf(created)}},
		{"origins", func() error {
			entry, err := account.NewAuditEntry(ann.ID, pgtest.Browser, account.OriginsChanged, pgtest.Now())
			if err != nil {
				return err
			}
			return store.Identities.SetOrigins(t.Context(), access.OfKey(ann.ID), ann.ID, []string{"https://app.example.com"}, entry)
		}, []string{hashOf(key), hashOf(created)}},

		{"by hand: disabled", sql(`UPDATE api_keys SET enabled = false WHERE id = $1`), []string{hashOf(key)}},
		{"by hand: scopes", sql(`UPDATE api_keys SET scopes = '{webhooks}' WHERE id = $1`), []string{hashOf(key)}},
		{"by hand: networks", sql(`UPDATE api_keys SET networks = '{}' WHERE id = $1`), []string{hashOf(key)}},
		{"by hand: limit", sql(`UPDATE api_keys SET limit_requests = 100 WHERE id = $1`), []string{hashOf(key)}},
		{"by hand: period", sql(`UPDATE api_keys SET limit_period_seconds = 1 WHERE id = $1`), []string{hashOf(key)}},
		{"by hand: bucket", sql(`UPDATE api_keys SET limit_bucket = gen_random_uuid() WHERE id = $1`), []string{hashOf(key)}},
		{"by hand: environment", sql(`UPDATE api_keys SET environment = 'live', start = 'sk_live_abcd' WHERE id = $1`), []string{hashOf(key)}},
		{"by hand: another account's", sql(`UPDATE api_keys SET account_id = (SELECT id FROM accounts WHERE email LIKE 'by%') WHERE id = $1`), []string{hashOf(key)}},
		{"by hand: hash", sql(`UPDATE api_keys SET hash = sha256('other') WHERE id = $1`), []string{hashOf(key), other}},
		{"by hand: row removed", sql(`DELETE FROM api_keys WHERE id = $1`), []string{other}},
		{"by hand: account disabled", func() error {
			_, err := store.Pool().ExecContext(t.Context(), `UPDATE accounts SET disabled_at = now() WHERE email = $1`, email)
			return err
		}, []string{hashOf(created)}},
		{"account deleted", func() error { return store.Identities.DeleteAccount(t.Context(), email, pgtest.Browser, pgtest.Now()) }, []string{hashOf(created)}},
		{"used", func() error {
			usage := account.Usage{KeyID: created.ID, Minute: pgtest.Now().Truncate(time.Minute), Accepted: 1, LastUsedAt: pgtest.Now()}
			_, err := store.Identities.RecordUsage(t.Context(), uuid.New(), []account.Usage{usage}, pgtest.Now())
			return err
		}, nil},
		{"by hand: last use noted", func() error {
			_, err := store.Pool().ExecContext(t.Context(), `UPDATE api_keys SET last_used_at = now()`)
			return err
		}, nil},
		{"thrice in one transaction", func() error {
			_, err := store.Pool().ExecContext(t.Context(), `UPDATE api_keys SET enabled = false; UPDATE api_keys SET enabled = true;
				UPDATE api_keys SET enabled = false`)
			return err
		}, []string{hashOf(created), hashOf(gone), hashOf(bystander)}},
		{"taken back", func() error {
			_, err := store.Pool().ExecContext(t.Context(), `BEGIN; UPDATE api_keys SET enabled = true; ROLLBACK`)
			return err
		}, nil},
	} {
		if err := c.change(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []string
		got, cursor = pgtest.Changes(t, store, cursor)
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: hashes differ (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestKeyChanges_CursorExpired(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	_, cursor := pgtest.Changes(t, store, "")
	plain, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(plain), "/")
	history, snapshot := parts[1], parts[2]
	write := func(when time.Time, history, snapshot string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%d/%s/%s", when.Unix(), history, snapshot)))
	}
	at := func(when time.Time, snapshot string) string { return write(when, history, snapshot) }
	pgtest.Changes(t, store, at(time.Now().Add(-23*time.Hour), snapshot))
	cluster, rest, _ := strings.Cut(history, ".")
	timeline, era, _ := strings.Cut(rest, ".")
	for name, bad := range map[string]string{
		"not base64":                "%%%",
		"a word":                    "cursor",
		"cut off":                   cursor[:16], // before its snapshot, of which a part may be one too
		"no time":                   base64.RawURLEncoding.EncodeToString([]byte(history + "/" + snapshot)),
		"no history":                base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%d/%s", time.Now().Unix(), snapshot))),
		"of another cluster":        write(time.Now(), "0"+cluster[1:]+"."+rest, snapshot),
		"of another timeline":       write(time.Now(), cluster+".00000099."+era, snapshot),
		"of before a crash":         write(time.Now(), cluster+"."+timeline+".1", snapshot),
		"without an era":            write(time.Now(), cluster+"."+timeline, snapshot),
		"not a time":                base64.RawURLEncoding.EncodeToString([]byte("now/" + history + "/" + snapshot)),
		"no snapshot":               at(time.Now(), ""),
		"another statement":         at(time.Now(), "1:1:'; DROP TABLE key_changes; --"),
		"a snapshot out of order":   at(time.Now(), "9:5:"),
		"a number past 64 bits":     at(time.Now(), "1:99999999999999999999:"),
		"too old":                   at(time.Now().Add(-25*time.Hour), snapshot),
		"ahead of the database":     at(time.Now(), "900000000:900000000:"),
		"a list out of order":       at(time.Now(), "700:710:709,705"),
		"members past the snapshot": at(time.Now(), "700:710:711"),
	} {
		since, next, err := store.Identities.KeyChanges(t.Context(), []string{bad}, time.Now())
		if err != nil || next == "" || !since[bad].Expired || since[bad].Hashes != nil {
			t.Errorf("%s: got %+v, %q, %v", name, since, next, err)
		}
	}
}

// Whatever a cursor says, it cannot break the statement that it shares with others.
func TestParseSnapshot_AgreesWithPostgres(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	_, cursor := pgtest.Changes(t, store, "")
	plain, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	head := string(plain)[:strings.LastIndex(string(plain), "/")+1]
	number := func() string {
		return []string{"0", "1", "5", "7", "07", "9", "40", "4294967296", "4294967301", "18446744073709551616", "-1", "+5", "", "x"}[rand.IntN(14)]
	}
	var after []string
	want := map[string]identity.KeyChanges{}
	taken := 0
	for range 400 {
		text := number() + ":" + number() + ":"
		for range rand.IntN(3) {
			text += number() + ","
		}
		if rand.IntN(4) > 0 {
			text = strings.TrimSuffix(text, ",")
		}
		// Postgres itself says what is a snapshot, and which of them are of the past.
		var past bool
		err := store.Pool().QueryRowContext(t.Context(), `SELECT pg_snapshot_xmax($1::text::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())`,
			text).Scan(&past)
		if err == nil && (strings.Contains(text, "+") || strings.HasSuffix(text, ",")) {
			continue // which Postgres takes, but never writes
		}
		if past {
			taken++
		}
		cursor := base64.RawURLEncoding.EncodeToString([]byte(head + text))
		after = append(after, cursor)
		want[cursor] = identity.KeyChanges{Expired: !past}
	}
	got, _, err := store.Identities.KeyChanges(t.Context(), after, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || taken == 0 {
		t.Errorf("of %d cursors that Postgres takes (-want +got):\n%s", taken, diff)
	}
}

// One reading for many cursors returns what a reading for each of them alone did: a cursor that is read again, as by a gateway that
// lost the answer, is told the same.
func TestKeyChanges_ManyCursors(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	after := []string{"", "no cursor"}
	want := map[string]identity.KeyChanges{"": {}, "no cursor": {Expired: true}}
	open := pgtest.Begin(t, store) // so that the snapshots differ by more than where they end
	if err := noteChange(t.Context(), open, "late"); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		_, cursor := pgtest.Changes(t, store, "")
		after = append(after, cursor)
		tx := pgtest.Begin(t, store)
		if err := errors.Join(noteChange(t.Context(), tx, fmt.Sprint(n)), tx.Commit()); err != nil {
			t.Fatal(err)
		}
	}
	if err := open.Commit(); err != nil {
		t.Fatal(err)
	}
	for n, cursor := range after[2:] {
		hashes, _ := pgtest.Changes(t, store, cursor)
		want[cursor] = identity.KeyChanges{Hashes: hashes}
		if len(hashes) != 20-n+1 {
			t.Errorf("cursor %d is told %d changes", n, len(hashes))
		}
	}
	got, next, err := store.Identities.KeyChanges(t.Context(), after, time.Now())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if left, _ := pgtest.Changes(t, store, next); len(left) > 0 {
		t.Errorf("told again: %q", told(t, left))
	}
}
