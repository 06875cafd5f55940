package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	// followEvery is how often moments are taken. It adds to the time after which an account that wrote is read from the
	// replica again, and costs the primary one small query a core each time.
	followEvery = 200 * time.Millisecond
	// followTimeout bounds a look at either server.
	followTimeout = 500 * time.Millisecond
	// lagTolerated is from when on a replica that is behind counts as not ready.
	lagTolerated = 10 * time.Second
)

// FollowReplica keeps watch over the replica until ctx ends; lists are read from it only meanwhile. It logs when the replica
// cannot be used any more and when it can again, not each failure. Without a replica it returns at once.
func (s *Store) FollowReplica(ctx context.Context, log *slog.Logger) {
	if s.replica == nil {
		return
	}
	defer s.replica.setFault(errNotFollowed)
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for used, first := false, true; ; first = false {
		err := s.lookAtReplica(ctx)
		if ctx.Err() != nil {
			return
		}
		s.replica.setFault(err)
		switch {
		case err != nil && (used || first):
			log.Warn("lists are read from the primary alone, looking at the replica again several times a second", "error", err)
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

// CheckReplica returns nil while lists are read from the replica, or there is none.
func (s *Store) CheckReplica(context.Context) error {
	r := s.replica
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault != nil {
		return r.fault
	}
	if behind := r.behind(time.Now()); behind > lagTolerated {
		return fmt.Errorf("the replica is %s behind the primary", behind.Round(time.Second))
	}
	return nil
}

// usable reports whether the replica is to be asked at all.
func (r *replica) usable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault == nil
}

// setFault notes why the replica is not to be asked, nil where it is.
func (r *replica) setFault(fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// lookAtReplica finds out how far the replica is, takes a moment of the primary, and so which moments are reached; in this
// order, as the rule needs it.
func (s *Store) lookAtReplica(ctx context.Context) error {
	state, err := s.replica.look(ctx)
	if err != nil {
		return fmt.Errorf("look at the replica: %w", err)
	}
	now, err := s.takeMoment(ctx)
	if err != nil {
		return fmt.Errorf("look at the primary: %w", err)
	}
	if !state.follows(now) {
		return errDiverged
	}
	s.replica.note(now, state.Position)
	return nil
}

func (r *replica) look(ctx context.Context) (state standby, err error) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	err = r.db.NewRaw(askStandby).Scan(ctx, &state)
	return state, err
}

// takeMoment reads the position in the statement whose snapshot it is, and so after that.
func (s *Store) takeMoment(ctx context.Context) (moment, error) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	now := moment{taken: time.Now()}
	err := s.db.NewRaw(`SELECT pg_current_snapshot()::text AS snapshot, (log.position - '0/0'::pg_lsn)::bigint AS position,
		substr(pg_walfile_name(log.position), 1, 8) AS timeline, system_identifier AS system,
		`+crashEpoch+` AS era FROM pg_control_system(), pg_current_wal_insert_lsn() AS log (position)`).Scan(ctx, &now)
	return now, err
}

// note keeps a moment, and forgets those that a newer one makes useless: the replica has replayed the log up to replayed.
func (r *replica) note(now moment, replayed int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reached != nil && r.reached.history() != now.history() {
		r.reached = nil
	}
	if last := len(r.waiting) - 1; last >= 0 && r.waiting[last].history() != now.history() {
		r.waiting = nil
	}
	passed := 0
	for passed < len(r.waiting) && r.waiting[passed].Position <= replayed {
		passed++
	}
	if passed > 0 {
		reached := r.waiting[passed-1]
		r.reached = &reached
		r.waiting = append(r.waiting[:0], r.waiting[passed:]...)
	}
	if len(r.waiting) == 0 {
		r.stride = 1 // it has caught up
	}
	if now.Position <= replayed {
		r.reached, r.waiting = &now, nil
	} else {
		r.keep(now)
	}
	r.metrics.lagBytes.Set(float64(max(0, now.Position-replayed)))
	r.metrics.lagSeconds.Set(r.behind(now.taken).Seconds())
}

// keep lets a moment wait to be reached. Of a replica that stays behind only every so-many-th is kept.
func (r *replica) keep(now moment) {
	if r.looks++; len(r.waiting) > 0 && r.looks%r.stride != 0 {
		return
	}
	r.waiting = append(r.waiting, now)
	if len(r.waiting) <= maxMoments {
		return
	}
	r.stride *= 2
	kept := r.waiting[:0]
	for i, m := range r.waiting {
		if i%2 == 0 {
			kept = append(kept, m)
		}
	}
	r.waiting = kept
}

// behind is how long ago the primary was what the replica is; the caller holds the lock. Where everything was replayed it is
// the age of the last look.
func (r *replica) behind(now time.Time) time.Duration {
	switch {
	case r.reached != nil:
		return now.Sub(r.reached.taken)
	case len(r.waiting) > 0:
		return now.Sub(r.waiting[0].taken)
	}
	return 0
}
