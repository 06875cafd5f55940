package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
)

// target is the request target of every request. Core has its response in memory. Gateways forward it instead of serving it from
// their cache, because its colon is encoded.
const target = "/v2/tokens?chain-id=eip155%3A11155111"

// keyList is a list of API keys that the load repeats, and a file of them for wrk.
type keyList struct {
	path string
	keys []string
}

func newKeyList(dir, name string, keys []string) (*keyList, error) {
	l := &keyList{path: filepath.Join(dir, name+".keys"), keys: keys}
	return l, os.WriteFile(l.path, []byte(strings.Join(keys, "\n")+"\n"), 0o600)
}

// requestTemplate is a request whose key is KEY.
type requestTemplate string

// tokensRequest requests the target with a key.
var tokensRequest = requestTemplate(getRequest("X-Api-Key: KEY"))

// request returns the request with the n-th key of the list.
func (l *keyList) request(template requestTemplate, n int) []byte {
	return []byte(strings.Replace(string(template), "KEY", l.keys[n%len(l.keys)], 1))
}

// getRequest returns a request for the target with these headers.
func getRequest(headers ...string) []byte {
	return []byte(formatRequest("GET "+target, "", headers...))
}

// formatRequest returns a request with this method and target, body and headers.
func formatRequest(methodAndTarget, body string, headers ...string) string {
	lines := append([]string{methodAndTarget + " HTTP/1.1", "Host: loadtest"}, headers...)
	if body != "" {
		lines = append(lines, "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)))
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

// keyLists are the keys of all rows.
type keyLists struct {
	good    *keyList // each within its limit
	limited *keyList // so few that most of their requests are over the limit
	unknown *keyList // well-formed keys that do not exist
	mixed   *keyList // of 20: 18 good, one limited, one unknown
}

const (
	limitedKeys = 4
	unknownKeys = 100_000
)

// makeKeys stores count good keys and the limited ones for the account of an existing key.
func makeKeys(ctx context.Context, dir, databaseURL, existing string, count int) (lists keyLists, err error) {
	good, limited := randomKeys(count), randomKeys(limitedKeys)
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return lists, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var owner uuid.UUID
	if err := conn.QueryRow(ctx, "SELECT account_id FROM api_keys WHERE start = $1", existing[:12]).Scan(&owner); err != nil {
		return lists, fmt.Errorf("find the account of a key: %w", err)
	}
	if err := copyKeys(ctx, conn, owner, append(limited, good...)); err != nil {
		return lists, err
	}
	if err := raiseAccountLimits(ctx, conn); err != nil {
		return lists, err
	}
	unknown := reveal(randomKeys(unknownKeys))
	var mixed []string
	for n, key := range reveal(good) {
		if n%18 == 0 {
			block := len(mixed) / 20
			mixed = append(mixed, limited[block%limitedKeys].Reveal(), unknown[block%unknownKeys])
		}
		mixed = append(mixed, key)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	for _, list := range []struct {
		name string
		keys []string
		into **keyList
	}{
		{"good", reveal(good), &lists.good},
		{"spent", reveal(limited), &lists.limited},
		{"unknown", unknown, &lists.unknown},
		{"mixed", mixed, &lists.mixed},
	} {
		if *list.into, err = newKeyList(dir, list.name, list.keys); err != nil {
			return lists, err
		}
	}
	return lists, nil
}

func randomKeys(count int) []apikey.Key {
	keys := make([]apikey.Key, count)
	for n := range keys {
		keys[n] = apikey.New(network.Test)
	}
	return keys
}

func reveal(keys []apikey.Key) []string {
	texts := make([]string, len(keys))
	for n, key := range keys {
		texts[n] = key.Reveal()
	}
	return texts
}

// raiseAccountLimits lets accounts have more active keys than clients may create. It skips the schema of a release without the
// limit.
func raiseAccountLimits(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `DO $$ BEGIN
		UPDATE accounts SET limit_requests = 1000000000, limit_period_seconds = 60;
	EXCEPTION WHEN undefined_column THEN NULL; END $$`)
	if err != nil {
		return fmt.Errorf("raise the limits of accounts: %w", err)
	}
	return nil
}

// copyKeys inserts keys with the default limit by COPY.
func copyKeys(ctx context.Context, conn *pgx.Conn, owner uuid.UUID, keys []apikey.Key) error {
	columns := []string{
		"id", "account_id", "name", "hash", "start", "environment", "enabled",
		"limit_requests", "limit_period_seconds", "created_at", "updated_at",
	}
	now := time.Now()
	rows := pgx.CopyFromSlice(len(keys), func(n int) ([]any, error) {
		hash := keys[n].Hash()
		return []any{
			uuid.New(), owner, fmt.Sprintf("load %d", n), hash[:], keys[n].Start(), string(keys[n].Environment()), true,
			account.DefaultLimit.Requests, int(account.DefaultLimit.Period / time.Second), now, now,
		}, nil
	})
	if _, err := conn.CopyFrom(ctx, pgx.Identifier{"api_keys"}, columns, rows); err != nil {
		return fmt.Errorf("copy keys: %w", err)
	}
	return nil
}
