package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"go.opentelemetry.io/otel/trace"

	"intents.internal/core/transfer"
	"intents.internal/pkg/tracing"
)

const (
	// flushers is how many commits may be on their way at once. One leaves the processor idle while the disk works; more
	// than two only make the batches smaller.
	flushers = 2
	// maxBatch bounds the rows of one commit, and so the time that the first of them waits for the last.
	maxBatch = 128
	// maxWaiting bounds the memory of what waits for a commit. A queue this long would take seconds to write.
	maxWaiting = 4096
	// writeTimeout bounds every transaction that writes intents, above the statement timeout: the database says first what
	// was too slow. It bounds how much later than its updated_at an intent can be seen, too.
	writeTimeout = 10 * time.Second
)

var (
	// errQueueFull is returned where more inserts wait than the database will take in any useful time.
	errQueueFull = errors.New("too many inserts are waiting for the database")
	// errKeyTaken is returned for a row whose idempotency key the account has stored before.
	errKeyTaken = errors.New("the idempotency key is stored already")
)

// transferWriter shares commits: each flusher takes all the inserts that wait and writes them in one statement, which is
// one transaction with one flush to disk. Under load batches grow by themselves; a lone insert waits for nobody.
type transferWriter struct {
	db       *bun.DB
	mu       sync.Mutex
	arrived  sync.Cond
	waiting  []*insertion
	closed   bool
	flushers sync.WaitGroup
	metrics  *metrics
	tracer   queryTracer
}

// insertion is one row on its way. done gets its outcome once.
type insertion struct {
	row *transferRow
	// span is that of whoever waits for it.
	span trace.Span
	done chan outcome
}

// outcome tells when the row was created by the database's clock, or why it was not.
type outcome struct {
	createdAt time.Time
	err       error
	// commit is the span of the commit, which all its rows share.
	commit trace.Span
}

func newTransferWriter(db *bun.DB, m *metrics, tracer queryTracer) *transferWriter {
	w := &transferWriter{db: db, metrics: m, tracer: tracer}
	w.arrived.L = &w.mu
	for range flushers {
		w.flushers.Go(w.flush)
	}
	return w
}

// close writes what still waits and ends the flushers.
func (w *transferWriter) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.arrived.Broadcast()
	w.flushers.Wait()
}

// insert waits until the row is durable, refused or ctx ends; in the last case it may be stored all the same. It returns
// errKeyTaken where there is such a row already.
func (w *transferWriter) insert(ctx context.Context, row *transferRow) (createdAt time.Time, err error) {
	span := tracing.Start(trace.SpanFromContext(ctx), "write transfer")
	defer span.End()
	i := &insertion{row: row, span: span, done: make(chan outcome, 1)}
	if err := w.enqueue(i); err != nil {
		return time.Time{}, err
	}
	select {
	case o := <-i.done:
		tracing.Link(span, o.commit)
		return o.createdAt, o.err
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

func (w *transferWriter) enqueue(i *insertion) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.waiting) >= maxWaiting {
		w.metrics.refused.Inc()
		return errQueueFull
	}
	w.waiting = append(w.waiting, i)
	w.metrics.waiting.Inc()
	w.arrived.Signal()
	return nil
}

func (w *transferWriter) flush() {
	for batch := w.take(); len(batch) > 0; batch = w.take() {
		w.write(batch)
	}
}

// take waits for insertions and returns them, none once the writer is closed and empty.
func (w *transferWriter) take() []*insertion {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) == 0 && !w.closed {
		w.arrived.Wait()
	}
	n := min(len(w.waiting), maxBatch)
	batch := slices.Clone(w.waiting[:n])
	w.waiting = slices.Delete(w.waiting, 0, n)
	w.metrics.waiting.Sub(float64(n))
	return batch
}

// write stores a batch. Where one row breaks a constraint, each is tried alone, so that it fails without its neighbours.
func (w *transferWriter) write(batch []*insertion) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	started := time.Now()
	commit := w.startCommit(batch)
	created, err := w.store(ctx, batch)
	endQuery(commit, err)
	w.metrics.batch.Observe(float64(len(batch)))
	w.metrics.writing.Observe(time.Since(started).Seconds())
	w.metrics.moved(born, transfer.Created, len(created))
	if err != nil && len(batch) > 1 && isRowsFault(err) {
		for _, i := range batch {
			w.write([]*insertion{i})
		}
		return
	}
	if busy(err) {
		w.refuseWaiting(err) // they would wait as long, for the same answer
	}
	for _, i := range batch {
		createdAt, stored := created[i.row.ID]
		if err == nil && !stored {
			i.done <- outcome{err: errKeyTaken, commit: commit}
			continue
		}
		i.done <- outcome{createdAt: createdAt, err: err, commit: commit}
	}
}

// refuseWaiting fails all inserts that wait.
func (w *transferWriter) refuseWaiting(err error) {
	w.mu.Lock()
	waiting := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	w.metrics.waiting.Sub(float64(len(waiting)))
	w.metrics.refused.Add(float64(len(waiting)))
	for _, i := range waiting {
		i.done <- outcome{err: err}
	}
}

// isRowsFault tells an error of the rows' own (a data exception or a broken constraint) from one of the database's.
func isRowsFault(err error) bool {
	state := sqlState(err)
	return len(state) == 5 && (state[:2] == "22" || state[:2] == "23")
}

// store writes the rows and their first events in one statement and returns the rows that are new with the time they were
// created at: that of the statement by the database's clock, which is one for all cores and later than any wait before it.
func (w *transferWriter) store(ctx context.Context, batch []*insertion) (map[uuid.UUID]time.Time, error) {
	rows := make([]*transferRow, len(batch))
	for n, i := range batch {
		rows[n] = i.row
	}
	// Two batches with the same idempotency keys wait for each other's rows; in one order they cannot wait in a circle.
	slices.SortFunc(rows, func(a, b *transferRow) int {
		return cmp.Or(slices.Compare(a.AccountID[:], b.AccountID[:]), cmp.Compare(a.IdempotencyKey, b.IdempotencyKey))
	})
	insert := w.db.NewInsert().Model(&rows).
		Value("created_at", "statement_timestamp()").Value("updated_at", "statement_timestamp()").
		On("CONFLICT (account_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING").
		Returning("id, account_id, status, created_at")
	events := w.db.NewRaw(`INSERT INTO events (account_id, transfer_id, to_status, occurred_at)
		SELECT account_id, id, status, created_at FROM born`)
	var stored []struct {
		ID        uuid.UUID
		CreatedAt time.Time
	}
	err := w.db.NewSelect().With("born", insert).With("told", events).Table("born").Column("id", "created_at").Scan(ctx, &stored)
	if err != nil {
		return nil, fmt.Errorf("write %d transfers: %w", len(rows), err)
	}
	created := make(map[uuid.UUID]time.Time, len(stored))
	for _, row := range stored {
		created[row.ID] = row.CreatedAt.UTC()
	}
	return created, nil
}
