package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// clientTimeoutMargin is how much later than Postgres core cancels a statement itself, because the error of Postgres is clearer.
// The client timeout covers connections without these settings, and a server that does not respond.
const clientTimeoutMargin = time.Second

// timeLimits bound the run time and the lock waits of statements. Each connection requests them as startup parameters, which a
// pooler may ignore.
type timeLimits struct {
	// settings are settings of Postgres with their values.
	settings map[string]time.Duration
	// clientTimeout is when core cancels a statement.
	clientTimeout time.Duration
	// longLockTimeout is how long reports and imports, which run one at a time, wait for a lock.
	longLockTimeout time.Duration
}

func newTimeLimits(statement, lock time.Duration) timeLimits {
	longLock := statement / 2
	return timeLimits{clientTimeout: statement + clientTimeoutMargin, longLockTimeout: longLock, settings: map[string]time.Duration{
		"statement_timeout": statement, "lock_timeout": min(lock, longLock), "idle_in_transaction_session_timeout": 2 * statement,
	}}
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d", d.Milliseconds()) }

// cancelKey is the key of the cancel function in the stash of an event.
type cancelKey struct{}

// BeforeQuery implements bun.QueryHook. When a statement times out pgx also cancels it in the database, even through a pooler.
func (l timeLimits) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	switch event.Query {
	case "BEGIN", "COMMIT", "ROLLBACK":
		return ctx // the context of BEGIN is that of the whole transaction
	}
	ctx, cancel := context.WithTimeout(ctx, l.clientTimeout)
	if event.Stash == nil {
		event.Stash = map[any]any{}
	}
	event.Stash[cancelKey{}] = cancel
	return ctx
}

// AfterQuery implements bun.QueryHook.
func (timeLimits) AfterQuery(_ context.Context, event *bun.QueryEvent) {
	if cancel, ok := event.Stash[cancelKey{}].(context.CancelFunc); ok {
		cancel()
	}
}

// AllowLongLocks has the rest of a transaction wait longer for locks: reports and imports run one at a time.
func (d *DB) AllowLongLocks(ctx context.Context, tx bun.Tx) error {
	return setLockTimeout(ctx, tx, d.limits.longLockTimeout)
}

// setLockTimeout sets lock_timeout for the rest of the transaction.
func setLockTimeout(ctx context.Context, tx bun.Tx, d time.Duration) error {
	if _, err := tx.NewRaw("SELECT set_config('lock_timeout', ?, true)", milliseconds(d)).Exec(ctx); err != nil {
		return fmt.Errorf("set lock_timeout: %w", err)
	}
	return nil
}

// LimitsNotInForce lists the time limits that the connections to the database lack, each with the actual and the requested value.
// It returns none if all are in force or shorter. The usual cause is a pooler that ignores startup parameters.
func (d *DB) LimitsNotInForce(ctx context.Context) ([]string, error) {
	var rows []struct {
		Name    string
		Setting int64 // milliseconds, 0 for no limit
	}
	names := make([]string, 0, len(d.limits.settings))
	for name := range d.limits.settings {
		names = append(names, name)
	}
	err := d.NewRaw("SELECT name, setting::bigint FROM pg_settings WHERE name IN (?)", bun.List(names)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the time limits in force: %w", withPoolerHint(err))
	}
	var missing []string
	for _, row := range rows {
		want := d.limits.settings[row.Name].Milliseconds()
		if row.Setting == 0 || row.Setting > want {
			missing = append(missing, fmt.Sprintf("%s is %d ms, not %d ms", row.Name, row.Setting, want))
		}
	}
	slices.SortFunc(missing, cmp.Compare)
	return missing, nil
}

// withPoolerHint adds to the error of a pooler that rejects core's startup parameters which settings make it accept them.
func withPoolerHint(err error) error {
	if err == nil || !strings.Contains(err.Error(), "unsupported startup parameter") {
		return err
	}
	return fmt.Errorf("%w; in pgbouncer.ini set ignore_startup_parameters = %s, and have Postgres set these for core's role: "+
		"core/postgres/README.md says how", err, "statement_timeout, lock_timeout, idle_in_transaction_session_timeout")
}
