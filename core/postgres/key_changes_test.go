package postgres_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/account"
	"intents.internal/core/postgres"
	"intents.internal/core/postgres/pgtest"
)

// changes reads the feed once.
func changes(t *testing.T, store *postgres.Store, after string) (hashes []string, cursor string) {
	t.Helper()
	hashes, cursor, err := store.KeyChanges(t.Context(), after, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return hashes, cursor
}

func TestKeyChangesTellsEveryChangeOnce(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	const email = "ann@example.com"
	ann := insertAccount(t, store, email)
	bystander := insertKey(t, store, insertAccount(t, store, "bystander@example.com").ID)
	key := insertKey(t, store, ann.ID)
	gone := insertKey(t, store, ann.ID)
	created := newKey(t, ann.ID, account.KeyRequest{})
	hashOf := func(k *account.Key) string { return hex.EncodeToString(k.Hash[:]) }
	other := fmt.Sprintf("%x", fingerprint("other"))
	sql := func(statement string) func() error {
		return func() error {
			_, err := store.Pool().ExecContext(t.Context(), statement, key.ID)
			return err
		}
	}
	update := func(change func(*account.Key)) func() error {
		return func() error {
			_, err := store.UpdateKey(t.Context(), ann.ID, key.ID, func(k *account.Key) (account.AuditEntry, error) {
				change(k)
				return keyEntry(k, account.KeyUpdated), nil
			})
			return err
		}
	}
	soon := now().Add(time.Minute)

	hashes, cursor := changes(t, store, "")
	if len(hashes) != 0 || cursor == "" {
		t.Fatalf("a new reader gets %q and cursor %q", hashes, cursor)
	}
	for _, c := range []struct {
		name   string
		change func() error
		want   []string
	}{
		{"nothing", func() error { return nil }, nil},
		{"created", func() error { return store.InsertKey(t.Context(), created, keyEntry(created, account.KeyCreated)) }, []string{hashOf(created)}},
		{"disabled", update(func(k *account.Key) { k.Enabled = false }), []string{hashOf(key)}},
		{"enabled", update(func(k *account.Key) { k.Enabled = true }), []string{hashOf(key)}},
		{"expiry moved", update(func(k *account.Key) { k.ExpiresAt = &soon }), []string{hashOf(key)}},
		{"deleted", func() error { return store.DeleteKey(t.Context(), ann.ID, gone.ID, browser, now()) }, []string{hashOf(gone)}},
		{"account disabled", func() error { return store.DisableAccount(t.Context(), email, browser, now()) }, []string{hashOf(key), hashOf(created)}},
		{"account enabled", func() error { return store.EnableAccount(t.Context(), email, browser, now()) }, []string{hashOf(key), hashOf(created)}},

		{"by hand: disabled", sql(`UPDATE api_keys SET enabled = false WHERE id = $1`), []string{hashOf(key)}},
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
		{"account deleted", func() error { return store.DeleteAccount(t.Context(), email, browser, now()) }, []string{hashOf(created)}},
		{"used", func() error {
			usage := account.Usage{KeyID: created.ID, Minute: now().Truncate(time.Minute), Accepted: 1, LastUsedAt: now()}
			return store.RecordUsage(t.Context(), uuid.New(), []account.Usage{usage}, now())
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
		got, cursor = changes(t, store, cursor)
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: hashes differ (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestKeyChangesOfOneCursorCanBeReadAgain(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	ann := insertAccount(t, store, "ann@example.com")
	_, cursor := changes(t, store, "")
	key := insertKey(t, store, ann.ID)
	want := []string{hex.EncodeToString(key.Hash[:])}
	for range 2 { // as a gateway does that lost the answer
		got, _ := changes(t, store, cursor)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("hashes differ (-want +got):\n%s", diff)
		}
	}
}

func TestKeyChangesRefusesTheCursor(t *testing.T) {
	t.Parallel()
	store := pgtest.New(t)
	_, cursor := changes(t, store, "")
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
	cluster, timeline, _ := strings.Cut(history, ".")
	if _, _, err := store.KeyChanges(t.Context(), at(time.Now().Add(-23*time.Hour), snapshot), time.Now()); err != nil {
		t.Errorf("a cursor of 23 hours ago: %v", err)
	}
	for name, bad := range map[string]string{
		"not base64":                "%%%",
		"a word":                    "cursor",
		"cut off":                   cursor[:len(cursor)/2],
		"no time":                   base64.RawURLEncoding.EncodeToString([]byte(history + "/" + snapshot)),
		"no history":                base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%d/%s", time.Now().Unix(), snapshot))),
		"of another cluster":        write(time.Now(), "0"+cluster[1:]+"."+timeline, snapshot),
		"of another timeline":       write(time.Now(), cluster+".00000099", snapshot),
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
		if hashes, next, err := store.KeyChanges(t.Context(), bad, time.Now()); !errors.Is(err, postgres.ErrCursorExpired) {
			t.Errorf("%s: got %q, %q, %v", name, hashes, next, err)
		}
	}
}
