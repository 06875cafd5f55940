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

// clientTimeoutMargin is how much later than Postgres core itself gives a statement up. Postgres's word comes first, as it is the
// clearer one; core's is there for connections on which the settings are not in force, and for a server that is silent.
const clientTimeoutMargin = time.Second

// lockTimeout is how long a client's statement waits for a lock, which none has for that long unless something is wrong.
const lockTimeout = 300 * time.Millisecond

// timeLimits bound what the statements of a store may take, and hold locks for. Each connection asks for them when it
// begins; a pooler may take no notice of that.
type timeLimits struct {
	// settings are Postgres's, with their values.
	settings map[string]time.Duration
	// own is when core cancels a statement.
	clientTimeout time.Duration
	// patience is how long a statement waits for a lock that others rightly have.
	longLockTimeout time.Duration
}

func newTimeLimits(statement time.Duration) timeLimits {
	longLock := statement / 2
	return timeLimits{clientTimeout: statement + clientTimeoutMargin, longLockTimeout: longLock, settings: map[string]time.Duration{
		"statement_timeout": statement, "lock_timeout": min(lockTimeout, longLock), "idle_in_transaction_session_timeout": 2 * statement,
	}}
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d", d.Milliseconds()) }

// cancelKey is where an event keeps what ends its deadline.
type cancelKey struct{}

// BeforeQuery implements bun.QueryHook. A statement that is given up is cancelled in the database as well, by pgx, through
// a pooler too.
func (l timeLimits) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	switch event.Query {
	case "BEGIN", "COMMIT", "ROLLBACK":
		return ctx // the context of BEGIN is the whole transaction's
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

// extendLockTimeout lets a transaction wait for locks longer than clients' statements do: reports and imports take turns.
func (s *Store) extendLockTimeout(ctx context.Context, tx bun.Tx) error {
	if _, err := tx.NewRaw("SELECT set_config('lock_timeout', ?, true)", milliseconds(s.limits.longLockTimeout)).Exec(ctx); err != nil {
		return fmt.Errorf("set lock_timeout: %w", err)
	}
	return nil
}

// LimitsNotInForce lists the time limits that the database's connections do not have, each with its value there and the one
// that was asked for; none where all are at least as narrow as they should be. A pooler that ignores what a connection asks
// for when it begins is the common cause.
func (s *Store) LimitsNotInForce(ctx context.Context) ([]string, error) {
	var rows []struct {
		Name    string
		Setting int64 // milliseconds, 0 for no limit
	}
	names := make([]string, 0, len(s.limits.settings))
	for name := range s.limits.settings {
		names = append(names, name)
	}
	err := s.db.NewRaw("SELECT name, setting::bigint FROM pg_settings WHERE name IN (?)", bun.List(names)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the time limits in force: %w", withPoolerHint(err))
	}
	var missing []string
	for _, row := range rows {
		want := s.limits.settings[row.Name].Milliseconds()
		if row.Setting == 0 || row.Setting > want {
			missing = append(missing, fmt.Sprintf("%s is %d ms, not %d ms", row.Name, row.Setting, want))
		}
	}
	slices.SortFunc(missing, cmp.Compare)
	return missing, nil
}

// withPoolerHint says what to do where a pooler does not let core in.
func withPoolerHint(err error) error {
	if err == nil || !strings.Contains(err.Error(), "unsupported startup parameter") {
		return err
	}
	return fmt.Errorf("%w; in pgbouncer.ini set ignore_startup_parameters = %s, and have Postgres set these for core's role: "+
		"core/postgres/README.md says how", err, "statement_timeout, lock_timeout, idle_in_transaction_session_timeout")
}
