package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/core/identity/account"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/loadtest/seed"
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

// requestTemplate is a request whose key is KEY. SEQUENCE stands for a text that is another in each request.
type requestTemplate string

// tokensRequest requests the target with a key.
var tokensRequest = requestTemplate(getRequest("X-Api-Key: KEY"))

// request returns the request with the n-th key of the list.
func (l *keyList) request(template requestTemplate, n int) []byte {
	request := strings.Replace(string(template), "KEY", l.keys[n%len(l.keys)], 1)
	if before, after, found := strings.Cut(request, sequence); found {
		request = before + uuid.NewString() + after
	}
	return []byte(request)
}

const sequence = "SEQUENCE"

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
}

const (
	limitedKeys = 4
	unknownKeys = 100_000
)

// makeKeys stores count good keys and the limited ones for the account of an existing key.
func makeKeys(ctx context.Context, dir, databaseURL, existing string, count int) (lists keyLists, err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return lists, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var owner uuid.UUID
	if err := conn.QueryRow(ctx, "SELECT account_id FROM api_keys WHERE start = $1", existing[:12]).Scan(&owner); err != nil {
		return lists, fmt.Errorf("find the account of a key: %w", err)
	}
	good, goodErr := seed.Keys(ctx, conn, owner, count, account.DefaultLimit)
	limited, limitedErr := seed.Keys(ctx, conn, owner, limitedKeys, account.DefaultLimit)
	if err := errors.Join(goodErr, limitedErr); err != nil {
		return lists, err
	}
	unknown := make([]string, unknownKeys)
	for n := range unknown {
		unknown[n] = apikey.New(network.Test).Reveal()
	}
	for _, list := range []struct {
		name string
		keys []string
		into **keyList
	}{
		{"good", good, &lists.good},
		{"spent", limited, &lists.limited},
		{"unknown", unknown, &lists.unknown},
	} {
		if *list.into, err = newKeyList(dir, list.name, list.keys); err != nil {
			return lists, err
		}
	}
	return lists, nil
}

// creationInterval is the time between the creation of two intents.
const creationInterval = 100 * time.Millisecond

// copyIntents inserts the intents with numbers in the range from–to by COPY, created at creationInterval before now. One in ten
// is cancelled. The domains are for the database of the release before, which needs them.
func copyIntents(ctx context.Context, conn *pgx.Conn, account uuid.UUID, from, to int) error {
	now := time.Now().UTC().Truncate(time.Millisecond)
	next := now.Add(2 * time.Second)
	columns := []string{
		"id", "account_id", "key_id", "environment", "type", "status", "order_id", "order_scheme", "source_chain", "source_account", "source_token", "source_amount",
		"destination_chain", "destination_account", "destination_token", "destination_amount", "origin_domain", "destination_domain",
		"origin_settler", "destination_settler", "deadline", "reference", "created_at", "updated_at",
	}
	n := from
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"transfers"}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		if n == to {
			return nil, nil
		}
		created := now.Add(-time.Duration(n) * creationInterval)
		if time.Now().After(next) {
			fmt.Printf("loading: %d of %d rows\n", n, to)
			next = time.Now().Add(2 * time.Second)
		}
		id, order := syntheticID(created, n), syntheticOrder(n)
		status := transfer.Created
		if n%10 == 0 {
			status = transfer.Cancelled
		}
		n++
		return []any{
			id, account, account, "test", "transfer", string(status), order, registry.StandardOrder, "eip155:11155111", chainSender, registry.NativeAddress, "1",
			"eip155:11155111", chainRecipient, registry.NativeAddress, "1", 11155111, 11155111,
			"", "", now.Add(time.Hour), fmt.Sprintf("order-%d", n), created, created,
		}, nil
	}))
	if err != nil {
		return fmt.Errorf("load intents: %w", err)
	}
	if _, err := conn.Exec(ctx, "VACUUM ANALYZE transfers"); err != nil {
		return fmt.Errorf("analyze the intents: %w", err)
	}
	return nil
}
