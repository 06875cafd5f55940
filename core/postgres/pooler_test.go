package postgres_test

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
)

const (
	// pooledCores share pooledServers connections of Postgres's, though each may have sixteen of its own.
	pooledCores   = 4
	pooledServers = 4
	// pooledRounds is how often each core does everything.
	pooledRounds = 25
)

// smallPool is a PgBouncer in transaction mode with few server connections.
var smallPool = []string{"pool_mode = transaction", "default_pool_size = 4", "max_client_conn = 500", pgtest.IgnoredParameters}

// pooledStores are several cores behind one pooler.
type pooledStores struct {
	cores []*rooms.Rooms
	// direct reaches Postgres itself.
	direct *rooms.Rooms
	known  *registry.Snapshot
	owner  *account.Account
}

// Several cores through a transaction pooler with few connections fail, lose and double nothing.
func TestStore_PgBouncer(t *testing.T) {
	t.Parallel()
	url := pgtest.Unmigrated(t)
	direct := pgtest.Open(t, url)
	if _, err := direct.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	pooled := pgtest.Pooler(t, url, smallPool...)
	c := pooledStores{direct: direct, known: pgtest.LoadRegistry(t, direct), owner: pgtest.SignUp(t, direct, "ann@example.com")}
	for range pooledCores {
		c.cores = append(c.cores, pgtest.Open(t, pooled))
	}
	report, keys := pgtest.NewKey(t, c.owner.ID, account.KeyRequest{}), make(chan string, pooledCores*pooledRounds)
	if err := pgtest.AddKey(t.Context(), direct, report, pgtest.KeyEntry(report, account.KeyCreated)); err != nil {
		t.Fatal(err)
	}
	stop := c.follow(t)
	expired := overdue(t, direct, c.known)
	var work sync.WaitGroup
	var expiries atomic.Int64
	for round := range pooledRounds {
		for n, core := range c.cores {
			work.Go(func() {
				c.transfers(t, core, round)
				c.usage(t, core, report, round)
				keys <- c.rotateKeys(t, core)
			})
			if round%10 == n {
				work.Go(func() { expiries.Add(int64(expire(t, core))) })
			}
		}
		work.Wait()
		if t.Failed() {
			break
		}
	}
	if got := expiries.Load(); got != expired {
		t.Errorf("%d intents expired in all, want %d", got, expired)
	}
	close(keys)
	c.wantTold(t, keys, stop)
	c.wantWhole(t, report)
	backends := pgtest.LookUp[int](t, direct, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()`)
	if most := pooledServers + postgres.OpenConnections(direct.DB) + 1; backends > most { // pgtest has one to each database
		t.Errorf("%d connections to Postgres, want at most %d", backends, most)
	}
}

// transfers makes an intent under a key that all cores use in this round, lists it, and cancels it.
func (c pooledStores) transfers(t *testing.T, core *rooms.Rooms, round int) {
	t.Helper()
	once := pgtest.Idempotent(t, "round "+string(rune('A'+round)), pgtest.TransferBody)
	made, err := core.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, c.known, c.owner.ID, pgtest.TransferBody), once)
	if err != nil {
		t.Errorf("insert: %v", err)
		return
	}
	found := false
	for summary, err := range core.Intents.Transfers(t.Context(), c.owner.ID, intents.TransferFilter{}) {
		if err != nil {
			t.Errorf("list: %v", err)
			return
		}
		found = found || summary.ID == made.ID
	}
	if !found {
		t.Errorf("the list lacks intent %s, which was acknowledged before", made.ID)
	}
	_, err = core.Intents.Transition(t.Context(), c.owner.ID, made.ID, transfer.Command{Trigger: transfer.Cancel})
	if err != nil && !errors.Is(err, transfer.ErrTransition) {
		t.Errorf("cancel: %v", err)
	}
}

// usage has every core report the same of a round; it counts once.
func (c pooledStores) usage(t *testing.T, core *rooms.Rooms, key *account.Key, round int) {
	t.Helper()
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte{byte(round)})
	minute := time.Unix(1_800_000_000, 0).UTC()
	if _, err := core.Identities.RecordUsage(t.Context(), id, []account.Usage{{KeyID: key.ID, Minute: minute, Accepted: 1}}, pgtest.Now()); err != nil {
		t.Errorf("usage: %v", err)
	}
}

// rotateKeys makes a key and deletes it, and returns its hash.
func (c pooledStores) rotateKeys(t *testing.T, core *rooms.Rooms) string {
	t.Helper()
	key := pgtest.NewKey(t, c.owner.ID, account.KeyRequest{})
	if err := pgtest.AddKey(t.Context(), core, key, pgtest.KeyEntry(key, account.KeyCreated)); err != nil {
		t.Errorf("insert a key: %v", err)
	}
	if err := pgtest.DeleteKey(t.Context(), core, c.owner.ID, key.ID); err != nil {
		t.Errorf("delete a key: %v", err)
	}
	return hex.EncodeToString(key.Hash[:])
}

// overdue makes intents that should have expired and returns how many.
func overdue(t *testing.T, store *rooms.Rooms, known *registry.Snapshot) int64 {
	t.Helper()
	const many = 1200 // more than one batch
	late := pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody)
	pgtest.Multiply(t, store, late.ID, many-1)
	pgtest.Exec(t, store, `UPDATE transfers SET deadline = now() - interval '1 second'`)
	return many
}

func expire(t *testing.T, core *rooms.Rooms) (total int) {
	t.Helper()
	for {
		expired, err := core.Intents.ExpireTransfers(t.Context())
		if err != nil {
			t.Errorf("expire: %v", err)
		}
		if expired == 0 || err != nil {
			return total
		}
		total += expired
	}
}

// follow reads the key feed, by another core each time, until what it returns is called, which gives the hashes told.
func (c pooledStores) follow(t *testing.T) (stop func() []string) {
	t.Helper()
	_, cursor := pgtest.Changes(t, c.direct, "")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan []string, 1)
	go func() {
		var told []string
		for turn := 0; ; turn++ {
			last := ctx.Err() != nil // the reading after everything was done
			since, next, err := c.cores[turn%pooledCores].Identities.KeyChanges(t.Context(), []string{cursor}, time.Now())
			if err != nil {
				t.Errorf("key changes: %v", err)
				last = true
			}
			told, cursor = append(told, since[cursor].Hashes...), next
			if last {
				done <- told
				return
			}
		}
	}()
	return func() []string { cancel(); return <-done }
}

// wantTold wants every key told, once or twice: it was made and deleted, and both may fall into one reading.
func (c pooledStores) wantTold(t *testing.T, keys <-chan string, stop func() []string) {
	t.Helper()
	times := map[string]int{}
	for _, hash := range stop() {
		times[hash]++
	}
	for hash := range keys {
		if n := times[hash]; n < 1 || n > 2 {
			t.Errorf("key %s, made and deleted, was told %d times", hash, n)
		}
	}
}

// wantWhole wants one intent and one cancellation a round, and each report once.
func (c pooledStores) wantWhole(t *testing.T, key *account.Key) {
	t.Helper()
	for query, want := range map[string]int{
		`SELECT count(*) FROM transfers WHERE account_id = $1 AND status = 'cancelled'`:                     pooledRounds,
		`SELECT count(*) FROM transfers WHERE account_id = $1`:                                              pooledRounds,
		`SELECT count(*) FROM events WHERE account_id = $1 AND to_status = 'created'`:                       pooledRounds,
		`SELECT count(*) FROM events WHERE account_id = $1 AND to_status = 'cancelled'`:                     pooledRounds,
		`SELECT sum(accepted)::int FROM key_usage WHERE account_id = $1`:                                    pooledRounds,
		`SELECT count(*) FROM api_keys WHERE account_id = $1 AND deleted_at IS NOT NULL`:                    pooledCores * pooledRounds,
		`SELECT count(*) FROM events WHERE account_id <> $1 AND to_status = 'expired'`:                      1200,
		`SELECT count(*) FROM audit_log WHERE account_id = $1 AND action IN ('key_created', 'key_deleted')`: 2*pooledCores*pooledRounds + 1,
		`SELECT count(*) FROM usage_reports WHERE $1 <> gen_random_uuid()`:                                  pooledRounds,
		`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND $1 <> gen_random_uuid() AND NOT fastpath AND database = (
			SELECT oid FROM pg_database WHERE datname = current_database())`: 0,
	} {
		if got := pgtest.LookUp[int](t, c.direct, query, key.AccountID); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}
