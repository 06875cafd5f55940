package postgres_test

import (
	"testing"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
	"intents.internal/pkg/network"
)

// Each read of the console's overview examines a bounded number of rows, also of an account with many that has none of what is looked for.
func TestOverview_RowsRead(t *testing.T) {
	t.Parallel()
	l := newLongLists(t)
	// A thousand keys were used in each minute of the last hour, and as many before.
	pgtest.Exec(t, l.plain, `INSERT INTO api_keys (id, account_id, name, hash, start, environment, enabled, limit_requests, limit_period_seconds, limit_bucket, scopes,
			networks, created_at, updated_at)
		SELECT md5(n::text)::uuid, $1, 'key', sha256(n::text::bytea), 'sk_test_0000', 'test', true, 50, 60, gen_random_uuid(), '{webhooks}', '{}', now(), now()
		FROM generate_series(1, 1000) n`, l.owner.AccountID)
	pgtest.Exec(t, l.plain, `INSERT INTO key_usage (account_id, minute, key_id, accepted, limited, refused)
		SELECT $1, date_trunc('minute', now()) - n / 1000 * interval '1 min', md5((n % 1000 + 1)::text)::uuid, 1, 0, 0
		FROM generate_series(1, $2) n`, l.owner.AccountID, listed)
	account, store := l.owner.AccountID, l.store
	since := time.Unix(1_700_000_000, 0) // before all
	for _, environment := range []network.Environment{network.Test, network.Live} {
		reads := map[string]func() error{
			"counts a day": func() error {
				_, _, err := store.Intents.DayCounts(t.Context(), account, environment, since)
				return err
			},
			"volumes": func() error {
				_, _, err := store.Intents.TokenVolumes(t.Context(), account, environment, since, []transfer.Status{transfer.Filled}, 10)
				return err
			},
			"expiring": func() error {
				_, err := store.Intents.Expiring(t.Context(), account, environment, since, 5)
				return err
			},
			"refundable": func() error {
				_, err := store.Intents.Refundables(t.Context(), account, environment, 5)
				return err
			},
			"requests": func() error {
				_, _, err := store.Identities.AccountUsage(t.Context(), account, environment, time.Now().Add(-time.Hour), time.Minute)
				return err
			},
			"webhooks": func() error {
				_, err := store.Webhooks.Webhooks(t.Context(), feed.Owner{AccountID: account, Environment: environment})
				return err
			},
		}
		for name, read := range reads {
			if err := read(); err != nil {
				t.Errorf("%s, %s: %v", environment, name, err)
			}
			most := float64(mostRead)
			if name == "requests" {
				most += postgres.LongScan // and the key of each row, for its environment
			}
			if rows, statements := l.rowsRead(); rows > most {
				t.Errorf("%s, %s: %.0f rows were read, want at most %.0f:\n%s", environment, name, rows, most, statements)
			}
		}
	}
}
