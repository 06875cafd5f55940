package gateways_test

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/wire"
)

// readFilter gets the filter of keys.
func readFilter(t *testing.T, s *webtest.Service) (*apikey.Filter, string) {
	t.Helper()
	response := s.Send(t, "GET", "/internal/key-filter", "")
	text := webtest.ReadAll(t, response)
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
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	first, disabled, gone := s.CreateKey(t, `{"name":"a"}`, ann), s.CreateKey(t, `{"name":"b"}`, ann), s.CreateKey(t, `{"name":"c"}`, ann)
	pgtest.Exec(t, s.Store, `UPDATE api_keys SET enabled = false WHERE name = 'b'; UPDATE api_keys SET deleted_at = now() WHERE name = 'c'`)
	filter, cursor := readFilter(t, s)
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
	for hash, err := range s.Store.Identities.KeyHashes(t.Context()) {
		if err != nil || hex.EncodeToString(hash[:]) == webtest.HashOf(gone.Key) {
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
	second := s.CreateKey(t, `{"name":"d"}`, ann)
	again, cursorAgain := readFilter(t, s)
	if cursorAgain != cursor || !has(again, first.Key) {
		t.Error("the filter was made again within minutes")
	}
	if hashes := poll(t, s, cursor, "0s").Hashes; !slices.Equal(hashes, []string{webtest.HashOf(second.Key)}) {
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
	s := webtest.StartOn(t, store)
	ann := s.SignUp(t, "ann@example.com")
	s.CreateKey(t, `{"name":"a"}`, ann)
	_, before := readFilter(t, s)
	pgtest.Exec(t, s.Store, `SELECT pg_stat_reset_shared('bgwriter')`) // which a recovery from a crash does, too
	made := s.CreateKey(t, `{"name":"b"}`, ann)
	filter, cursor := readFilter(t, s)
	parsed, err := apikey.Parse(made.Key)
	if err != nil {
		t.Fatal(err)
	}
	if cursor == before || !filter.Has(parsed.Hash()) {
		t.Error("the filter of before the crash is given out")
	}
	poll(t, s, cursor, "0s")
}

func TestGetKeyFilter_ManyKeys(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	s.SignUp(t, "ann@example.com")
	_, empty := readFilter(t, s)
	pgtest.Exec(t, s.Store, `INSERT INTO api_keys (id, account_id, name, hash, start, environment, enabled, limit_requests, limit_period_seconds, limit_bucket, scopes, networks, created_at, updated_at)
		SELECT gen_random_uuid(), (SELECT id FROM accounts), 'many', sha256(n::text::bytea), 'sk_test_abcd', 'test', true, 50, 60, gen_random_uuid(), '{webhooks}', '{}', now(), now()
		FROM generate_series(1, 20001) AS n`)
	filter, cursor := readFilter(t, s)
	if cursor == empty {
		t.Error("the filter before so many changes is given out")
	}
	count := 0
	for hash, err := range s.Store.Identities.KeyHashes(t.Context()) {
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
