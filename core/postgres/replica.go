package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/uptrace/bun"
)

const (
	// replicaBudget bounds what a list's batch may take on the replica, so that one that is silent costs a list no more than
	// this before the primary answers. A batch takes a few milliseconds.
	replicaBudget = 500 * time.Millisecond
	// smallPage is up to how many intents a page costs the primary no more than the look that would send it to the replica.
	smallPage = 50
	// maxMoments bounds the moments that wait to be replayed. Beyond it every other one is forgotten, and half as many are
	// kept from then on: a replica that lags far needs no fine steps.
	maxMoments = 512
)

// replica is a streaming standby that lists are read from where that makes no difference.
//
// The rule, by which a list from the replica has everything that a list from the primary would have had when it was asked
// for: each core takes moments of the primary, several a second. A moment is a snapshot and, read after it, the position
// of the write-ahead log. A list of an account may be read from the replica if, for one such moment,
//
//  1. the replica has replayed the log up to the moment's position, and
//  2. the primary, asked when the list is asked for, has no event of the account's that the moment's snapshot does not see.
//
// Proof. Take a change of the account's that the primary shows when it is asked, such as any that was acknowledged before. It
// wrote an event in its own transaction, and by 2 the moment's snapshot sees that. What a snapshot sees has committed
// before the snapshot was taken, so its commit record is in the log before the position that was read after. By 1 the
// replica has replayed that record, and shows the change to every statement that begins later. The rule holds for a
// core that did not make the change as for one that did, needs no clock, and assumes nothing about how long a transaction or
// the replica takes. What may differ is what was about to commit in that instant and was acknowledged to nobody: the
// replica may show that first.
//
// It is the replica that answers which is asked for 1, in the transaction that reads the list: behind one address there may
// be several. And since positions and snapshots mean nothing in another history, both servers are asked with it whether they
// are of the moment's: the primary whether it still is that database cluster on that timeline, the replica whether it is a
// standby of it, which one that was promoted, or follows another primary, is not.
//
// A primary that crashes may lose log that was not flushed, and gives the transaction ids in it out again, so that a moment's
// snapshot seems to see what was written later. All moments of before are therefore of another history. So that none slips
// through, a look asks the replica first for its position and then takes a moment, and only moments of one history count by
// that position.
//
// A list that has begun on the replica goes on there only if that has everything which the batch before has shown; once
// it has turned to the primary it stays there.
type replica struct {
	db      *bun.DB
	metrics *replicaMetrics

	mu sync.Mutex
	// waiting are moments that the replica had not reached when it was looked at last, oldest first.
	waiting []moment
	// stride is that each so-many-th look at the primary gives a moment that waits, of looks in all.
	stride, looks int
	// reached is the newest that it had, nil for none.
	reached *moment
	// fault is why the replica is not asked at present, nil where it is.
	fault error
}

// moment is what the primary was like at one instant.
type moment struct {
	Snapshot string
	// Position is that of the write-ahead log, in bytes.
	Position int64
	// Timeline has eight hexadecimal digits.
	Timeline string
	// System is what makes this database cluster and its standbys differ from all others.
	System int64
	// Era is another one after each recovery from a crash, see crashEpoch.
	Era string

	taken time.Time
}

// history is what the moment's position and snapshot can be compared in, as cursors have it.
func (m moment) history() string {
	return fmt.Sprintf("%x.%s.%s", uint64(m.System), m.Timeline, m.Era) //nolint:gosec // Postgres's to_hex takes the bits as they are, too
}

var (
	errNotFollowed = errors.New("the replica has not been looked at yet")
	errDiverged    = errors.New("the server at CORE_READ_DATABASE_URL is no standby of the primary's on its timeline; it was promoted, " +
		"follows another primary, or has not made a restartpoint since the primary was promoted")
	errBehind = errors.New("the replica has not replayed what the list needs")
)

func newReplica(db *bun.DB, registry prometheus.Registerer) *replica {
	return &replica{db: db, metrics: newReplicaMetrics(registry), fault: errNotFollowed, stride: 1}
}

// proof returns the newest moment that the replica has reached, nil where it is not to be asked.
func (r *replica) proof() *moment {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.fault != nil:
		r.metrics.fellBack(r.fault)
		return nil
	case r.reached == nil:
		r.metrics.fellBack(errBehind)
	}
	return r.reached
}

// askStandby asks a server whether it is a standby, of which primary, and how far it has replayed the log.
const askStandby = `SELECT pg_is_in_recovery() AS standby, system_identifier AS system,
	lpad(upper(to_hex(timeline_id)), 8, '0') AS timeline, coalesce(pg_last_wal_replay_lsn() - '0/0'::pg_lsn, 0)::bigint AS position
	FROM pg_control_system() AS of, pg_control_checkpoint() AS at`

// standby is its answer. The timeline is that of its last restartpoint.
type standby struct {
	Standby  bool
	System   int64
	Timeline string
	Position int64
}

// follows tells whether the server is a standby of the moment's primary.
func (s standby) follows(m moment) bool {
	return s.Standby && s.System == m.System && s.Timeline == m.Timeline
}

// reading is where one list is being read.
type reading struct {
	// proven is the moment that the replica must have reached, nil for a list that is read from the primary.
	proven *moment
	// shown is the log's position by which the replica had all that the list has shown.
	shown int64
}

// batch reads one batch, all of it or nothing.
func (r *replica) batch(ctx context.Context, from *reading, accountID uuid.UUID, filter TransferFilter) ([]summaryRow, error) {
	ctx, cancel := context.WithTimeout(ctx, replicaBudget)
	defer cancel()
	var rows []summaryRow
	err := r.db.RunInTx(ctx, &sql.TxOptions{ReadOnly: true}, func(ctx context.Context, tx bun.Tx) error {
		var state standby
		// A statement of its own, since the one that reads the list must begin after the log was replayed.
		if err := tx.NewRaw(askStandby).Scan(ctx, &state); err != nil {
			return err
		}
		if !state.follows(*from.proven) {
			return errDiverged
		}
		if state.Position < max(from.proven.Position, from.shown) {
			return errBehind
		}
		rows = make([]summaryRow, 0, 16)
		err := transferQuery(r.db, accountID, filter).Conn(tx).Scan(ctx, &rows)
		if err != nil || len(rows) < filter.Limit {
			return err
		}
		return tx.NewRaw("SELECT coalesce(pg_last_wal_replay_lsn() - '0/0'::pg_lsn, 0)::bigint").Scan(ctx, &from.shown)
	})
	if err != nil {
		return nil, fmt.Errorf("read a list from the replica: %w", err)
	}
	return rows, nil
}

// failed notes that the replica did not answer a list. Unless the fault is that list's own, the replica is left alone
// until the next look at it.
func (r *replica) failed(err error) {
	r.metrics.fellBack(err)
	if reason := fallbackReason(err); reason == fellConflict || reason == fellBehind {
		return
	}
	r.setFault(err)
}
