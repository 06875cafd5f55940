package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/uptrace/bun"
)

const (
	// replicaTimeout bounds a batch on the replica; after that the primary is used. A batch takes a few milliseconds.
	replicaTimeout = 500 * time.Millisecond
	// followEvery is how often the position of the replica is read. It delays when an account that wrote is read from the replica
	// again, and costs the primary one small query per core.
	followEvery = 200 * time.Millisecond
	// followTimeout bounds one such read of both servers.
	followTimeout = 500 * time.Millisecond
	// maxReplicaLag is the lag above which the replica counts as not ready.
	maxReplicaLag = 10 * time.Second
)

// Replica is a streaming standby that lists are read from.
//
// A list of an account is read from the replica if the replica has replayed the log position at which the account's last change was
// visible on the primary, and from the primary otherwise. Each core knows such a position from a PrimarySnapshot, which it takes
// several times a second: a snapshot of the primary and the log position that was read after it. When a list begins, the primary
// is asked whether the account has an event that the snapshot does not see. If not, the snapshot's position is the one that
// the replica must have replayed.
//
// Proof. Take a change of the account that the primary shows when it is asked, such as one that was acknowledged before. Its
// event was written in the same transaction, and the snapshot sees the event. What a snapshot sees has committed before the
// snapshot was taken, so its commit record is in the log before the position that was read after. A replica that has replayed that
// position shows the change to every statement that begins later. It does not matter which core made the change, and the rule needs no
// clock and no bound on how long a transaction or the replica takes. The replica may show a change that is about to commit
// and is acknowledged to nobody.
//
// The position is compared in the transaction that reads the list, since several replicas may share one address, and each batch of
// a list raises it to what the batch has shown. Positions and snapshots are comparable only within one clusterIdentity: a primary
// that crashes may lose log that was not flushed, and gives its transaction ids out again.
type Replica struct {
	db      *bun.DB
	metrics *replicaMetrics

	mu sync.Mutex
	// replayed is the newest snapshot whose position the replica has replayed, nil for none.
	replayed *PrimarySnapshot
	// pending is the next one, which the replica has not replayed yet, nil for none.
	pending *PrimarySnapshot
	// fault is why the replica is not used, nil while it is.
	fault error
}

// PrimarySnapshot is what the primary had committed up to a position of its log.
type PrimarySnapshot struct {
	Cluster  string `bun:"cluster"`
	Snapshot string `bun:"snapshot"`
	// LSN is the position in bytes.
	LSN int64 `bun:"lsn"`

	takenAt time.Time
}

// Position is what a replica must have replayed to show the snapshot.
func (s *PrimarySnapshot) Position() ReplicaPosition {
	return ReplicaPosition{cluster: s.Cluster, lsn: s.LSN}
}

// ReplicaPosition is the position that a replica must have replayed before a list is read from it. The zero value means the
// primary.
type ReplicaPosition struct {
	cluster string
	lsn     int64
}

var (
	errNotFollowed = errors.New("the position of the replica has not been read yet")
	errDiverged    = errors.New("the server at CORE_READ_DATABASE_URL is no standby of the primary's on its timeline; it was promoted, " +
		"follows another primary, or has not made a restartpoint since the primary was promoted")
	errBehind = errors.New("the replica has not replayed what the list needs")
)

func newReplica(db *bun.DB, registry prometheus.Registerer) *Replica {
	return &Replica{db: db, metrics: newReplicaMetrics(registry), fault: errNotFollowed}
}

// standby is the state that a standby reports.
type standby struct {
	InRecovery bool `bun:"in_recovery"`
	// Timeline is the cluster and the timeline of the last restartpoint, the beginning of a clusterIdentity.
	Timeline string `bun:"timeline"`
	// LSN is the position up to which the log is replayed.
	LSN int64 `bun:"lsn"`
}

func readStandby(ctx context.Context, db bun.IDB) (state standby, err error) {
	err = db.NewRaw(`SELECT pg_is_in_recovery() AS in_recovery,
		to_hex(system_identifier) || '.' || lpad(upper(to_hex(timeline_id)), 8, '0') AS timeline,
		coalesce(pg_last_wal_replay_lsn() - '0/0'::pg_lsn, 0)::bigint AS lsn
		FROM pg_control_system(), pg_control_checkpoint()`).Scan(ctx, &state)
	return state, err
}

func (s standby) follows(cluster string) bool {
	return s.InRecovery && strings.HasPrefix(cluster, s.Timeline+".")
}

// Newest is the newest snapshot whose position the replica has replayed, nil if lists are read from the primary.
func (r *Replica) Newest() *PrimarySnapshot {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.fault != nil:
		r.metrics.countFallback(r.fault)
		return nil
	case r.replayed == nil:
		r.metrics.countFallback(errBehind)
	}
	return r.replayed
}

// Read runs a read in a transaction on the replica if the replica has replayed the position, and raises the position for the next
// read if more is set.
func (r *Replica) Read(ctx context.Context, at *ReplicaPosition, read func(context.Context, bun.Conn, bun.Tx) (more bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("read from the replica: %w", err)
	}
	defer conn.Close()
	err = conn.RunInTx(ctx, &sql.TxOptions{ReadOnly: true}, func(ctx context.Context, tx bun.Tx) error {
		// A separate statement reads the position: the one that reads rows must start after the log was replayed.
		state, err := readStandby(ctx, tx)
		switch {
		case err != nil:
			return err
		case !state.follows(at.cluster):
			return errDiverged
		case state.LSN < at.lsn:
			return errBehind
		}
		more, err := read(ctx, conn, tx)
		if err != nil || !more {
			return err
		}
		state, err = readStandby(ctx, tx)
		at.lsn = max(at.lsn, state.LSN)
		return err
	})
	if err != nil {
		return fmt.Errorf("read from the replica: %w", err)
	}
	return nil
}

// CountChanged counts a list that is read from the primary because the account has changed since the newest snapshot.
func (r *Replica) CountChanged() { r.metrics.countFallback(errChanged) }

// ReadFailed counts a read that the replica failed to return. Unless the read itself caused the fault, the replica is not used
// until its position is read again.
func (r *Replica) ReadFailed(err error) {
	r.metrics.countFallback(err)
	if reason := fallbackReason(err); reason != fallbackConflict && reason != fallbackBehind {
		r.setFault(err)
	}
}

func (r *Replica) setFault(fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// Usable reports whether lists may be read from the replica.
func (r *Replica) Usable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault == nil
}

// FollowReplica reads the position of the replica until ctx ends; lists are read from the replica only while it runs. It logs
// when the replica becomes unusable and when it recovers. Without a replica it returns at once.
func (d *DB) FollowReplica(ctx context.Context, log *slog.Logger) {
	if d.Replica == nil {
		return
	}
	defer d.Replica.setFault(errNotFollowed)
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for used, first := false, true; ; first = false {
		err := d.updateReplicaPosition(ctx)
		if ctx.Err() != nil {
			return
		}
		d.Replica.setFault(err)
		switch {
		case err != nil && (used || first):
			log.Warn("lists are read from the primary alone, trying the replica again several times a second", "error", err)
		case err == nil && !used:
			log.Info("lists are read from the replica")
		}
		used = err == nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// updateReplicaPosition reads the position of the replica before it takes a snapshot of the primary, so that a position from before a
// crash of the primary is never compared with a snapshot from after it.
func (d *DB) updateReplicaPosition(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	state, err := readStandby(ctx, d.Replica.db)
	if err != nil {
		return fmt.Errorf("read the position of the replica: %w", err)
	}
	// pg_current_snapshot returns the snapshot at the start of the statement, so the position is read after it.
	current := PrimarySnapshot{takenAt: time.Now()}
	err = d.NewRaw("SELECT "+ClusterIdentity+` AS cluster, pg_current_snapshot()::text AS snapshot,
		(pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS lsn`).Scan(ctx, &current)
	if err != nil {
		return fmt.Errorf("take a snapshot of the primary: %w", err)
	}
	if !state.follows(current.Cluster) {
		return errDiverged
	}
	d.Replica.update(&current, state.LSN)
	return nil
}

// update keeps the state that the replica has replayed. Only one snapshot is pending at a time, so that a lagging replica costs
// no memory and finally replays it.
func (r *Replica) update(current *PrimarySnapshot, replayedLSN int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replayed != nil && r.replayed.Cluster != current.Cluster {
		r.replayed = nil
	}
	if r.pending != nil && r.pending.Cluster != current.Cluster {
		r.pending = nil
	}
	switch {
	case current.LSN <= replayedLSN:
		r.replayed, r.pending = current, nil
	case r.pending == nil:
		r.pending = current
	case r.pending.LSN <= replayedLSN:
		r.replayed, r.pending = r.pending, current
	}
	r.metrics.lagBytes.Set(float64(max(0, current.LSN-replayedLSN)))
	r.metrics.lagSeconds.Set(r.lag(current.takenAt).Seconds())
}

// lag is the age of the newest snapshot that the replica has replayed; the caller holds the lock.
func (r *Replica) lag(now time.Time) time.Duration {
	switch {
	case r.replayed != nil:
		return now.Sub(r.replayed.takenAt)
	case r.pending != nil:
		return now.Sub(r.pending.takenAt)
	}
	return 0
}

// CheckReplica returns nil while lists are read from the replica, and if there is none.
func (d *DB) CheckReplica(context.Context) error {
	r := d.Replica
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault != nil {
		return r.fault
	}
	if lag := r.lag(time.Now()); lag > maxReplicaLag {
		return fmt.Errorf("the replica is %s behind the primary", lag.Round(time.Second))
	}
	return nil
}
