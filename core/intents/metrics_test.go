package intents_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/transfer"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

// measured opens a store on a database of the test's own. values reads the metrics by name and labels' values; of a
// histogram, count and sum.
func measured(t *testing.T) (store *rooms.Rooms, values func() map[string]float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	patient := pgtest.Patient()
	patient.Metrics = registry
	store = pgtest.OpenWith(t, pgtest.Database(t), patient)
	return store, func() map[string]float64 { t.Helper(); return metricstest.Values(t, registry) }
}

// What was counted is what the events tell.
func TestMetrics_Transitions(t *testing.T) {
	t.Parallel()
	store, values := measured(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	if n, known := values()["intents_core_transitions_total created expired"]; n != 0 || !known {
		t.Errorf("before the first: %v, %v", n, known)
	}
	var intents []*transfer.Intent
	once := pgtest.Idempotent(t, "once", pgtest.TransferBody)
	for range 4 {
		intents = append(intents, pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody))
	}
	for range 2 { // the second makes none
		if _, err := store.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, known, owner, pgtest.TransferBody), once); err != nil {
			t.Fatal(err)
		}
	}
	for _, cause := range []transfer.Command{
		{Trigger: transfer.Submit, Hash: "0x01"},
		{Trigger: transfer.Fail, Failure: transfer.TxReplaced, Observed: &transfer.Transaction{}},
		{Trigger: transfer.Cancel}, // refused
		{Trigger: transfer.Submit, Hash: "0x02"},
	} {
		_, _ = store.Intents.Transition(t.Context(), owner, intents[0].ID, cause)
	}
	if _, err := store.Intents.Transition(t.Context(), owner, intents[1].ID, transfer.Command{Trigger: transfer.Cancel}); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, store, "UPDATE transfers SET deadline = now() - interval '1 second' WHERE id IN ($1, $2)", intents[2].ID, intents[3].ID)
	if expired, err := store.Intents.ExpireTransfers(t.Context()); expired != 2 || err != nil {
		t.Fatal(expired, err)
	}
	got := map[string]float64{}
	for name, n := range values() {
		if steps, found := strings.CutPrefix(name, "intents_core_transitions_total "); found {
			got[steps] = n
		}
	}
	want := map[string]float64{}
	rows, err := store.Pool().QueryContext(t.Context(), "SELECT coalesce(from_status, 'new') || ' ' || to_status, count(*) FROM events GROUP BY 1")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var steps string
		var n float64
		if err := rows.Scan(&steps, &n); err != nil {
			t.Fatal(err)
		}
		want[steps] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || want["new created"] != 5 {
		t.Errorf("(-events +counted):\n%s", diff)
	}
}

func TestMetrics_Writes(t *testing.T) {
	t.Parallel()
	store, values := measured(t)
	known := pgtest.LoadRegistry(t, store)
	release := holdFlushers(t, store, known)
	const queued = 12
	done := make(chan struct{})
	for range queued {
		go func() { pgtest.InsertTransfer(t, store, known, uuid.New(), pgtest.TransferBody); done <- struct{}{} }()
	}
	asynctest.Eventually(t, "the gauge tells of those that wait", func() bool { return values()["intents_core_writes_waiting"] == queued })
	release(queued)
	for range queued {
		<-done
	}
	got := values()
	for name, want := range map[string]float64{
		"intents_core_writes_waiting": 0, "intents_core_writes_waiting_limit": 4096, "intents_core_writes_refused_total": 0,
		"intents_core_write_batch_intents sum": held + queued, "intents_core_transitions_total new created": held + queued,
		"intents_core_write_duration_seconds count": got["intents_core_write_batch_intents count"],
	} {
		if got[name] != want {
			t.Errorf("%s is %g, want %g", name, got[name], want)
		}
	}
	if commits := got["intents_core_write_batch_intents count"]; commits < 3 || commits > held+2 {
		t.Errorf("%g commits for %d intents of which %d waited together", commits, held+queued, queued)
	}
	_ = store.Close()
	if _, err := store.Intents.InsertTransfer(t.Context(), pgtest.NewIntent(t, known, uuid.New(), pgtest.TransferBody), intents.Idempotency{}); err == nil {
		t.Error("a closed store took an intent")
	}
	if refused := values()["intents_core_writes_refused_total"]; refused != 1 {
		t.Errorf("%g refused, want 1", refused)
	}
}

// A gateway that has been away hears late of what changed meanwhile.
func TestMetrics_KeyChangeLag(t *testing.T) {
	t.Parallel()
	store, values := measured(t)
	_, cursor := pgtest.Changes(t, store, "")
	pgtest.InsertKey(t, store, pgtest.SignUp(t, store, "ann@example.com").ID)
	_, cursor = pgtest.Changes(t, store, cursor)
	pgtest.Changes(t, store, cursor)
	first := values()
	if n, lag := first["intents_core_key_change_lag_seconds count"], first["intents_core_key_change_lag_seconds sum"]; n != 1 || lag <= 0 || lag > 10 {
		t.Errorf("%g tellings, %g s late; want one, at once", n, lag)
	}
	pgtest.InsertKey(t, store, pgtest.SignUp(t, store, "bob@example.com").ID)
	pgtest.Exec(t, store, "UPDATE key_changes SET changed_at = changed_at - interval '1 minute'")
	pgtest.Changes(t, store, cursor)
	second := values()
	if lag := second["intents_core_key_change_lag_seconds sum"] - first["intents_core_key_change_lag_seconds sum"]; lag < 60 || lag > 70 {
		t.Errorf("a change of a minute ago was told %g s late", lag)
	}
}

func TestExpiryLag(t *testing.T) {
	t.Parallel()
	store, values := measured(t)
	known := pgtest.LoadRegistry(t, store)
	owner := uuid.New()
	for range 3 {
		pgtest.InsertTransfer(t, store, known, owner, pgtest.TransferBody)
	}
	lag := func() float64 {
		t.Helper()
		if err := store.Intents.ReadExpiryLag(t.Context()); err != nil {
			t.Fatal(err)
		}
		return values()["intents_core_expiry_lag_seconds"]
	}
	if got := lag(); got != 0 {
		t.Errorf("none is overdue, and the lag is %g s", got)
	}
	pgtest.Exec(t, store, "UPDATE transfers SET deadline = now() - interval '1 minute'")
	if got := lag(); got < 60 || got > 90 {
		t.Errorf("overdue for a minute, and the lag is %g s", got)
	}
	for expired := 1; expired > 0; {
		var err error
		if expired, err = store.Intents.ExpireTransfers(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := lag(); got != 0 {
		t.Errorf("all have expired, and the lag is %g s", got)
	}
	_ = store.Close()
	if err := store.Intents.ReadExpiryLag(t.Context()); err == nil || values()["intents_core_expiry_lag_failures_total"] != 1 {
		t.Errorf("without a database: %v", err)
	}
}

// A store whose metrics nobody wants works all the same, as do two in one process.
func TestMetrics_None(t *testing.T) {
	t.Parallel()
	for n := range 2 {
		store := pgtest.New(t)
		pgtest.InsertTransfer(t, store, pgtest.LoadRegistry(t, store), uuid.New(), pgtest.TransferBody)
		if err := store.Intents.ReadExpiryLag(t.Context()); err != nil {
			t.Error(fmt.Errorf("store %d: %w", n, err))
		}
	}
}
