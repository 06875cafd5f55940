package intents

import (
	"context"

	"intents.internal/core/transfer"
)

// InsertTransferWithBun writes the row of an intent that was inserted into a table like transfers, by bun's mapping of transferRow.
func InsertTransferWithBun(ctx context.Context, s *Store, table string, intent *transfer.Intent, idempotency Idempotency) error {
	row := newTransferRow(intent)
	row.IdempotencyKey = idempotency.Key
	_, err := s.db.NewInsert().Model(&row).ModelTableExpr(table).Exec(ctx)
	return err
}

// EncodeInsert returns what makes the parameters of an insert of intents.
func EncodeInsert(all []*transfer.Intent) func() [][]byte {
	rows := make([]*TransferRow, len(all))
	for n, intent := range all {
		row := newTransferRow(intent)
		rows[n] = &row
	}
	return func() [][]byte { return encodeInsert(insertOf(rows).columns, rows) }
}

// InsertsWaiting is how many inserts are in a store's queue.
func InsertsWaiting(s *Store) int {
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	return len(s.writer.queue)
}

// WriterQueue is the queue of a writer without flushers.
type WriterQueue struct{ w *transferWriter }

func NewWriterQueue() WriterQueue {
	w := &transferWriter{metrics: newMetrics(nil)}
	w.notEmpty.L = &w.mu
	return WriterQueue{w}
}

// Add adds n inserts. Take is a flusher that begins a commit and returns its rows, and Written ends a commit of n rows.
func (q WriterQueue) Add(n int) {
	for range n {
		q.w.enqueue(&Insert{})
	}
}
func (q WriterQueue) Take() int     { return len(q.w.dequeue()) }
func (q WriterQueue) Written(n int) { q.w.written(n) }
