package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"intents.internal/pkg/telemetry"
)

// pool keeps connections of one kind to one core. It reuses the most recently used connection, so that few stay open.
type pool struct {
	// dial opens a connection for a request with this deadline.
	dial func(ctx context.Context, deadline time.Time) (*coreConn, error)
	// maxConns bounds the connections, including those that are being dialed.
	maxConns int
	// patient lets requests wait for a connection until their deadline, not only for connWait.
	patient bool

	mu   sync.Mutex
	idle []*coreConn // the most recently used is last
	open int
	// waiters are the requests that found all connections in use, in order of arrival. Each receives a connection, or nil with
	// the right to dial one.
	waiters []chan *coreConn
	sweeper *time.Timer
	closed  bool
	// waits counts the requests that waited, timedOut those whose wait timed out.
	waits, timedOut uint64
}

// get returns a connection for a request with this deadline, which the caller must put or discard. newConn excludes idle
// connections, which core may have closed: a request without another attempt needs a new one. Its errors are ErrBusy and, with
// the cause, ErrUnreachable; after the end of ctx they mean nothing.
func (p *pool) get(ctx context.Context, newConn bool, deadline time.Time) (*coreConn, error) {
	c, waiter := p.acquire(newConn)
	if waiter != nil {
		var err error
		if c, err = p.wait(ctx, waiter, deadline); err != nil {
			return nil, err
		}
	}
	if c != nil && !c.usable() {
		_ = c.Close()
		c = nil
	}
	if c == nil {
		return p.dialConn(ctx, deadline)
	}
	return c, nil
}

// acquire returns an idle connection, nil with the right to dial one, or a place in the queue. It decides in one critical
// section, so that it misses no connection that is returned.
func (p *pool) acquire(newConn bool) (c *coreConn, waiter chan *coreConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	switch {
	case n > 0 && !newConn:
		c = p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
	case p.open < p.maxConns:
		p.open++
	case n > 0: // a new connection replaces the one that was idle for the longest time
		_ = p.idle[0].Close()
		p.idle = slices.Delete(p.idle, 0, 1)
	default:
		waiter = make(chan *coreConn, 1)
		p.waiters = append(p.waiters, waiter)
		p.waits++
	}
	return c, waiter
}

// wait returns the connection that it receives in time, or nil with the right to dial one.
func (p *pool) wait(ctx context.Context, waiter chan *coreConn, deadline time.Time) (*coreConn, error) {
	left := time.Until(deadline)
	if !p.patient {
		left = min(left, connWait)
	}
	timeout := time.NewTimer(left)
	defer timeout.Stop()
	select {
	case c := <-waiter:
		return c, nil
	case <-timeout.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := slices.Index(p.waiters, waiter)
	if n < 0 {
		return <-waiter, nil // received just before the lock was taken
	}
	p.waiters = slices.Delete(p.waiters, n, n+1)
	if ctx.Err() == nil {
		p.timedOut++
	}
	return nil, ErrBusy
}

// dialConn opens a connection within the bound; the caller has acquired the right to dial.
func (p *pool) dialConn(ctx context.Context, deadline time.Time) (*coreConn, error) {
	c, err := p.dial(ctx, deadline)
	if err != nil {
		p.release()
		if errors.Is(err, ErrUnreachable) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	c.pool = p
	return c, nil
}

// put returns a connection whose exchange is complete.
func (p *pool) put(c *coreConn, now time.Time) {
	c.idleSince = now
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		p.open--
		_ = c.Close()
	case len(p.waiters) > 0:
		p.popWaiter() <- c
	default:
		p.idle = append(p.idle, c)
		if p.sweeper == nil {
			p.sweeper = time.AfterFunc(idleTimeout, p.sweep)
		}
	}
}

// discard closes a connection that cannot be used again.
func (p *pool) discard(c *coreConn) {
	_ = c.Close()
	p.release()
}

// release passes the right to dial a connection to the first waiter.
func (p *pool) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiters) > 0 {
		p.popWaiter() <- nil
		return
	}
	p.open--
}

// popWaiter removes the first waiter; its channel has room.
func (p *pool) popWaiter() chan *coreConn {
	first := p.waiters[0]
	p.waiters = slices.Delete(p.waiters, 0, 1)
	return first
}

// sweep closes connections that were idle for idleTimeout.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].idleSince) >= idleTimeout {
		_ = p.idle[n].Close()
		n++
	}
	p.idle = slices.Delete(p.idle, 0, n)
	p.open -= n
	p.sweeper = nil
	if len(p.idle) > 0 && !p.closed {
		p.sweeper = time.AfterFunc(idleTimeout-time.Since(p.idle[0].idleSince), p.sweep)
	}
}

// close closes the idle connections now and the others when they are returned.
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

// state returns the values of the pool metrics.
func (p *pool) state() telemetry.PoolState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return telemetry.PoolState{Limit: p.maxConns, Open: p.open, InUse: p.open - len(p.idle), Waits: p.waits, TimedOut: p.timedOut}
}
