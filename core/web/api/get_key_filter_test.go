package api_test

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/wire"
)

// filter gets the filter of keys.
func (s *service) filter(t *testing.T) (*apikey.Filter, string) {
	t.Helper()
	response := s.send(t, "GET", "/internal/key-filter", "")
	text := readAll(t, response)
	var got wire.KeyFilter
	filter := new(apikey.Filter)
	if err := json.Unmarshal([]byte(text), &got); err != nil || response.StatusCode != 200 || got.Cursor == "" {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	if err := filter.UnmarshalBinary(got.Filter); err != nil {
		t.Fatal(err)
	}
	return filter, got.Cursor
}

func TestGetKeyFilter(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := signUp(t, s, "ann@example.com")
	first, disabled, gone := createKey(t, s, `{"name":"a"}`, ann), createKey(t, s, `{"name":"b"}`, ann), createKey(t, s, `{"name":"c"}`, ann)
	pgtest.Exec(t, s.store, `UPDATE api_keys SET enabled = false WHERE name = 'b'; UPDATE api_keys SET deleted_at = now() WHERE name = 'c'`)
	filter, cursor := s.filter(t)
	has := func(f *apikey.Filter, key string) bool {
		parsed, err := apikey.Parse(key)
		if err != nil {
			t.Fatal(err)
		}
		return f.Has(parsed.Hash())
	}
	if !has(filter, first.Key) || !has(filter, disabled.Key) { // which can be enabled at any time
		t.Error("a key is not in the filter")
	}
	for hash, err := range s.store.Identities.KeyHashes(t.Context()) {
		if err != nil || hex.EncodeToString(hash[:]) == hashOf(gone.Key) {
			t.Errorf("a deleted key is put in, or %v", err)
		}
	}
	mistaken := 0
	for range 1000 {
		if filter.Has(apikey.New(network.Test).Hash()) {
			mistaken++
		}
	}
	if mistaken > 10 {
		t.Errorf("%d of 1000 unknown keys are in the filter", mistaken)
	}

	// What was made since is told by the feed from the filter's cursor, also where the filter is the one of before.
	second := createKey(t, s, `{"name":"d"}`, ann)
	again, cursorAgain := s.filter(t)
	if cursorAgain != cursor || !has(again, first.Key) {
		t.Error("the filter was made again within minutes")
	}
	if hashes := s.poll(t, cursor, "0s").Hashes; !slices.Equal(hashes, []string{hashOf(second.Key)}) {
		t.Errorf("since the filter: %q", hashes)
	}
}

// After a failover the filter of before is of no use: the feed cannot tell what has changed since.
func TestGetKeyFilter_CursorExpired(t *testing.T) {
	t.Parallel()
	server, err := embedded.StartPostgres(t.Context(), embedded.PostgresConfig{Ephemeral: true}) // whose history is the test's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	store := pgtest.Open(t, server.URL)
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := startOn(t, store)
	ann := signUp(t, s, "ann@example.com")
	createKey(t, s, `{"name":"a"}`, ann)
	_, before := s.filter(t)
	pgtest.Exec(t, s.store, `SELECT pg_stat_reset_shared('bgwriter')`) // which a recovery from a crash does, too
	made := createKey(t, s, `{"name":"b"}`, ann)
	filter, cursor := s.filter(t)
	parsed, err := apikey.Parse(made.Key)
	if err != nil {
		t.Fatal(err)
	}
	if cursor == before || !filter.Has(parsed.Hash()) {
		t.Error("the filter of before the crash is given out")
	}
	s.poll(t, cursor, "0s")
}

func TestGetKeyFilter_ManyKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	signUp(t, s, "ann@example.com")
	_, empty := s.filter(t)
	pgtest.Exec(t, s.store, `INSERT INTO api_keys (id, account_id, name, hash, start, environment, enabled, limit_requests, limit_period_seconds, limit_bucket, scopes, networks, created_at, updated_at)
		SELECT gen_random_uuid(), (SELECT id FROM accounts), 'many', sha256(n::text::bytea), 'sk_test_abcd', 'test', true, 50, 60, gen_random_uuid(), '{webhooks}', '{}', now(), now()
		FROM generate_series(1, 20001) AS n`)
	filter, cursor := s.filter(t)
	if cursor == empty {
		t.Error("the filter before so many changes is given out")
	}
	count := 0
	for hash, err := range s.store.Identities.KeyHashes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if count++; !filter.Has(hash) {
			t.Fatalf("%s is not in the filter", hex.EncodeToString(hash[:]))
		}
	}
	if count != 20001 {
		t.Errorf("%d keys", count)
	}
}
