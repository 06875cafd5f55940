package forward

import (
	"slices"
	"sync"
	"time"

	"intents.internal/pkg/telemetry"
)

// pool keeps connections of one kind to one core. It gives out the one that was used last, so that the fewest stay open.
type pool struct {
	dial func() (*conn, error)
	// most bounds the connections, those being dialed included.
	most int

	mu   sync.Mutex
	idle []*conn // the one used last is last
	open int
	// waiters are the requests that found all connections in use, in order of arrival. Each is handed a connection, or nil with
	// the right to dial one.
	waiters []chan *conn
	sweeper *time.Timer
	closed  bool
	// waits and timedOut count those who had to wait, and who gave up.
	waits, timedOut uint64
}

// take gives a connection to the caller alone, who must give it back or drop it. A fresh one has not been idle: the request
// may have no attempt left that a connection closed by core meanwhile could cost. Its errors are ErrBusy, ErrUnreachable.
func (p *pool) take(fresh bool) (*conn, error) {
	c, waiter := p.acquire(fresh)
	if waiter != nil {
		var err error
		if c, err = p.wait(waiter); err != nil {
			return nil, err
		}
	}
	if c != nil && !c.usable() {
		_ = c.Close()
		c = nil
	}
	if c == nil {
		return p.make()
	}
	return c, nil
}

// acquire returns an idle connection, or nil with the right to dial one, or a place in the queue. One critical section decides,
// so that a connection given back meanwhile cannot pass the request by.
func (p *pool) acquire(fresh bool) (c *conn, waiter chan *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	switch {
	case n > 0 && !fresh:
		c = p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
	case p.open < p.most:
		p.open++
	case n > 0: // the connection idle for longest makes room for a fresh one
		_ = p.idle[0].Close()
		p.idle = slices.Delete(p.idle, 0, 1)
	default:
		waiter = make(chan *conn, 1)
		p.waiters = append(p.waiters, waiter)
		p.waits++
	}
	return c, waiter
}

// wait returns the connection that is handed over within connWait, or nil with the right to dial one.
func (p *pool) wait(waiter chan *conn) (*conn, error) {
	timeout := time.NewTimer(connWait)
	defer timeout.Stop()
	select {
	case c := <-waiter:
		return c, nil
	case <-timeout.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := slices.Index(p.waiters, waiter)
	if n < 0 {
		return <-waiter, nil // handed over just before the lock was taken
	}
	p.waiters = slices.Delete(p.waiters, n, n+1)
	p.timedOut++
	return nil, ErrBusy
}

// make opens a connection in a place that the caller holds.
func (p *pool) make() (*conn, error) {
	c, err := p.dial()
	if err != nil {
		p.leave()
		return nil, ErrUnreachable
	}
	c.pool = p
	return c, nil
}

// give takes a connection back that has carried its exchange to the end.
func (p *pool) give(c *conn, now time.Time) {
	c.rested = now
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		p.open--
		_ = c.Close()
	case len(p.waiters) > 0:
		p.next() <- c
	default:
		p.idle = append(p.idle, c)
		if p.sweeper == nil {
			p.sweeper = time.AfterFunc(idleTimeout, p.sweep)
		}
	}
}

// drop closes a connection that cannot be used again.
func (p *pool) drop(c *conn) {
	_ = c.Close()
	p.leave()
}

// leave frees the place of a connection for whoever waits first.
func (p *pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiters) > 0 {
		p.next() <- nil
		return
	}
	p.open--
}

// next is the first of those who wait; its channel has room.
func (p *pool) next() chan *conn {
	first := p.waiters[0]
	p.waiters = slices.Delete(p.waiters, 0, 1)
	return first
}

// sweep closes what has rested too long.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].rested) >= idleTimeout {
		_ = p.idle[n].Close()
		n++
	}
	p.idle = slices.Delete(p.idle, 0, n)
	p.open -= n
	p.sweeper = nil
	if len(p.idle) > 0 && !p.closed {
		p.sweeper = time.AfterFunc(idleTimeout-time.Since(p.idle[0].rested), p.sweep)
	}
}

// close drops the idle connections, and from now on those that come back.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		_ = c.Close()
	}
	p.open -= len(p.idle)
	p.idle, p.closed = nil, true
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
}

// state tells how the pool stands.
func (p *pool) state() telemetry.PoolState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return telemetry.PoolState{Limit: p.most, Open: p.open, InUse: p.open - len(p.idle), Waits: p.waits, TimedOut: p.timedOut}
}
