package limit

import (
	"errors"
	"runtime"
	"slices"
	"sync"
)

// maxBatch bounds the items of one call, and so how long one call blocks Redis.
const maxBatch = 256

var errLeaderPanicked = errors.New("the request that ran this one's batch panicked")

// pending is one item that waits for a batch or is in one.
type pending[T any] struct {
	item T
	// done items have their result in item; the others share the error of their batch.
	done bool
	err  error
	// wake is signalled once: when the item's batch has run, or with leads set when the item must run the next batch.
	wake  chan struct{}
	leads bool
}

// batcher runs the items of concurrent requests in batches, one batch at a time, without a timer or a goroutine (flat combining).
// An item that finds no batch running becomes the leader and runs a batch of all waiting items. The first item that arrived
// meanwhile is the next leader. Batches grow with the load; a lone item does not wait.
type batcher[T any] struct {
	// run sets done on the items that have a result, and err on single items. The error that it returns goes to every item that
	// is not done.
	run func([]*pending[T]) error

	mu      sync.Mutex
	waiting []*pending[T]
	running bool
	// batch is used only by the leader.
	batch []*pending[T]
	pool  sync.Pool
}

// do runs one item in a batch and returns the item with its result.
func (b *batcher[T]) do(item T) (T, error) {
	p, ok := b.pool.Get().(*pending[T])
	if !ok {
		p = &pending[T]{wake: make(chan struct{}, 1)}
	}
	p.item = item
	if b.enqueue(p) {
		b.lead(p)
	} else if <-p.wake; p.leads {
		b.lead(p)
	}
	item, err := p.item, p.err
	*p = pending[T]{wake: p.wake}
	b.pool.Put(p)
	return item, err
}

// enqueue adds the item and reports whether it leads at once.
func (b *batcher[T]) enqueue(p *pending[T]) (leads bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, p)
	leads = !b.running
	b.running = true
	return leads
}

// lead runs a batch that includes the leader's own item.
func (b *batcher[T]) lead(own *pending[T]) {
	// Other runnable goroutines run first, so that their items join this batch instead of the next.
	runtime.Gosched()
	runtime.Gosched()
	b.mu.Lock()
	n := min(len(b.waiting), maxBatch)
	b.batch = append(b.batch[:0], b.waiting[:n]...)
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.mu.Unlock()

	err := errLeaderPanicked
	defer func() { b.finish(own, err) }() // also after a panic, which would leave all items waiting
	err = b.run(b.batch)
}

// finish wakes the items of the batch and makes the first waiting item the next leader.
func (b *batcher[T]) finish(own *pending[T], err error) {
	release(b.batch, own, err)

	b.mu.Lock()
	if err != nil {
		// Items that waited behind a failed batch fail too, because their own batch would double their wait.
		behind := slices.Clone(b.waiting)
		b.waiting = slices.Delete(b.waiting, 0, len(b.waiting))
		b.running = false
		b.mu.Unlock()
		release(behind, nil, err)
		return
	}
	if len(b.waiting) == 0 {
		b.running = false
		b.mu.Unlock()
		return
	}
	next := b.waiting[0]
	next.leads = true
	b.mu.Unlock()
	next.wake <- struct{}{}
}

// release wakes the items of a batch except the leader's own.
func release[T any](batch []*pending[T], own *pending[T], err error) {
	for _, p := range batch {
		if err != nil && !p.done {
			p.err = err
		}
		if p != own {
			p.wake <- struct{}{}
		}
	}
}
