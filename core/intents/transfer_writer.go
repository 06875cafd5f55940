package intents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/postgres"
	"intents.internal/core/transfer"
)

const (
	// flushers is how many commits may be in progress. With one the processor is idle while the disk writes; more than two only
	// make the batches smaller.
	flushers = 2
	// groupWait bounds how long a flusher leaves inserts in the queue to make a larger batch. It is longer than a usual commit,
	// and short for inserts behind a commit that waits for a lock.
	groupWait = 5 * time.Millisecond
	// maxBatch bounds the rows of one commit, and so how long the first row waits for the last.
	maxBatch = 128
	// maxQueued bounds the memory of the queue. A queue of this length takes seconds to write.
	maxQueued = 4096
)

// transferWriter groups inserts into commits: each flusher takes all inserts of the queue and writes them in one statement, which
// is one transaction with one flush to disk. While the other flusher writes more rows than the queue has, the queue grows for
// groupWait, because each statement costs Postgres as much as about ten rows. So batches grow with load, and a single insert does
// not wait for others.
type transferWriter struct {
	db       *postgres.DB
	mu       sync.Mutex
	notEmpty sync.Cond
	queue    []*Insert
	// added is the number of inserts that were ever added to the queue.
	added uint64
	// writing is the number of rows in commits that began less than groupWait ago.
	writing  int
	closed   bool
	flushers sync.WaitGroup
	metrics  *metrics
}

func newTransferWriter(db *postgres.DB, m *metrics) *transferWriter {
	w := &transferWriter{db: db, metrics: m}
	w.notEmpty.L = &w.mu
	for range flushers {
		w.flushers.Go(w.flush)
	}
	db.BeforeClose(w.close)
	return w
}

// close writes the rest of the queue and ends the flushers.
func (w *transferWriter) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.notEmpty.Broadcast()
	w.flushers.Wait()
}

// abandon withdraws an insert, and reports whether its row was sent to the database already.
func (w *transferWriter) abandon(i *Insert) (sent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i.abandoned = true
	if n := slices.Index(w.queue, i); n >= 0 {
		w.queue = slices.Delete(w.queue, n, n+1)
		w.metrics.waiting.Dec()
	}
	return i.sent
}

// claim returns the rows of a batch whose callers still wait, at the last moment before they are sent to the database.
func (w *transferWriter) claim(batch []*Insert) []*TransferRow {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows := make([]*TransferRow, 0, len(batch))
	for _, i := range batch {
		if i.abandoned {
			continue
		}
		i.sent = true
		rows = append(rows, &i.row)
	}
	return rows
}

// unclaim records that the database has stored nothing of a batch.
func (w *transferWriter) unclaim(batch []*Insert) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range batch {
		i.sent = false
	}
}

// enqueue adds inserts to the queue. Those for which it has no room fail at once.
func (w *transferWriter) enqueue(inserts ...*Insert) {
	w.mu.Lock()
	room := maxQueued - len(w.queue)
	if w.closed {
		room = 0
	}
	taken := min(len(inserts), room)
	for _, i := range inserts[:taken] {
		w.added++
		i.number = w.added
	}
	w.queue = append(w.queue, inserts[:taken]...)
	w.metrics.waiting.Add(float64(taken))
	w.mu.Unlock()
	w.notEmpty.Signal()
	w.refuse(inserts[taken:], postgres.ErrQueueFull)
}

// refuse fails inserts that are not in the queue.
func (w *transferWriter) refuse(inserts []*Insert, err error) {
	w.metrics.refused.Add(float64(len(inserts)))
	for _, i := range inserts {
		i.results <- Result{Insert: i, err: err}
	}
}

func (w *transferWriter) flush() {
	for batch := w.dequeue(); len(batch) > 0; batch = w.dequeue() {
		late := time.AfterFunc(groupWait, func() { w.written(len(batch)) })
		_ = w.write(batch) // each insert has its error
		if late.Stop() {
			w.written(len(batch))
		}
	}
}

// written ends the wait for a commit of n rows.
func (w *transferWriter) written(n int) {
	w.mu.Lock()
	w.writing -= n
	w.mu.Unlock()
	w.notEmpty.Broadcast()
}

// dequeue waits for pending inserts and returns up to maxBatch of them, none once the writer is closed and the queue empty.
func (w *transferWriter) dequeue() []*Insert {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 && !w.closed || len(w.queue) > 0 && len(w.queue) < w.writing {
		w.notEmpty.Wait()
	}
	n := min(len(w.queue), maxBatch)
	w.writing += n
	batch := slices.Clone(w.queue[:n])
	w.queue = slices.Delete(w.queue, 0, n)
	w.metrics.waiting.Sub(float64(n))
	return batch
}

// write stores a batch. If one row violates a constraint, each row is written alone, so that only the violating row fails. If a row is
// locked, the rows of each account are written alone, so that only the account with the locked row waits for it and fails. It returns
// the error of the batch as a whole.
func (w *transferWriter) write(batch []*Insert) error {
	ctx, cancel := context.WithTimeout(context.Background(), postgres.WriteTimeout)
	defer cancel()
	started, waiting := time.Now(), w.lastNumber()
	created, err := w.store(ctx, batch)
	if err != nil && !postgres.IsOutcomeUnknown(err) {
		w.unclaim(batch)
	}
	w.metrics.batch.Observe(float64(len(batch)))
	w.metrics.writing.Observe(time.Since(started).Seconds())
	w.metrics.countTransitions(newIntent, transfer.Created, len(created))
	switch locked := postgres.IsLocked(err); {
	case err != nil && len(batch) > 1 && postgres.IsRowFault(err):
		for _, i := range batch {
			_ = w.write([]*Insert{i}) // the insert has the error
		}
		return nil
	case locked && len(batch) > 1 && len(byAccount(batch)) > 1:
		w.writeByAccount(batch, waiting)
		return nil
	case locked:
		w.refuseWaiting(err, func(i *Insert) bool { return i.row.AccountID == batch[0].row.AccountID }) // they need the same row
	case postgres.Busy(err):
		w.refuseWaiting(err, func(i *Insert) bool { return i.number <= waiting }) // they have waited as long for a connection
	}
	for _, i := range batch {
		createdAt, stored := created[i.row.ID]
		if err == nil && !stored {
			i.results <- Result{Insert: i, err: errDuplicateKey}
			continue
		}
		i.results <- Result{Insert: i, createdAt: createdAt, err: err}
	}
	return err
}

// maxLocked is how many accounts of a batch may have a locked row. With more of them the lock is on a table, as that of a migration.
const maxLocked = 4

// writeByAccount writes the rows of each account alone. Under a lock on a table it refuses the rest of the batch, and of the queue up to
// the number of an insert, which would wait as long.
func (w *transferWriter) writeByAccount(batch []*Insert, waiting uint64) {
	locked := 0
	accounts := byAccount(batch)
	for n, of := range accounts {
		err := w.write(of)
		if postgres.IsLocked(err) {
			locked++
		}
		if locked > maxLocked {
			w.refuse(slices.Concat(accounts[n+1:]...), err)
			w.refuseWaiting(err, func(i *Insert) bool { return i.number <= waiting })
			return
		}
	}
}

// lastNumber is the number of the insert that was added last.
func (w *transferWriter) lastNumber() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.added
}

// refuseWaiting fails the inserts of the queue that would wait as long for the same error.
func (w *transferWriter) refuseWaiting(err error, would func(*Insert) bool) {
	w.mu.Lock()
	var refused []*Insert
	w.queue = slices.DeleteFunc(w.queue, func(i *Insert) bool {
		if !would(i) {
			return false
		}
		refused = append(refused, i)
		return true
	})
	w.mu.Unlock()
	w.metrics.waiting.Sub(float64(len(refused)))
	w.refuse(refused, err)
}

// byAccount groups a batch by its accounts.
func byAccount(batch []*Insert) [][]*Insert {
	at := map[uuid.UUID]int{}
	var accounts [][]*Insert
	for _, i := range batch {
		n, found := at[i.row.AccountID]
		if !found {
			n = len(accounts)
			at[i.row.AccountID], accounts = n, append(accounts, nil)
		}
		accounts[n] = append(accounts[n], i)
	}
	return accounts
}

// store writes the rows and their first events in one statement and returns the new rows with their creation time: the time of
// the statement by the database's clock, which all cores share and which is after any wait in the queue.
func (w *transferWriter) store(ctx context.Context, batch []*Insert) (map[uuid.UUID]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, w.db.ClientTimeout())
	defer cancel()
	created, err := insertRows(ctx, w.db, func() []*TransferRow {
		rows := w.claim(batch)
		// Two batches with the same idempotency keys wait for each other; a common order of the rows, by all columns of the unique
		// index, prevents deadlocks.
		slices.SortFunc(rows, func(a, b *TransferRow) int {
			return cmp.Or(
				slices.Compare(a.AccountID[:], b.AccountID[:]), cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.IdempotencyKey, b.IdempotencyKey),
			)
		})
		return rows
	})
	if err != nil {
		return nil, fmt.Errorf("write %d transfers: %w", len(batch), err)
	}
	return created, nil
}
