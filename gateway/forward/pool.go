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
	// waiting are those who found all in use, first come first. A nil connection is the right to dial one.
	waiting []chan *conn
	sweeper *time.Timer
	closed  bool
	// waits and timedOut count those who had to wait, and who gave up.
	waits, timedOut uint64
}

// take gives a connection to the caller alone, who must give it back or drop it. Its errors are ErrBusy, ErrUnreachable.
func (p *pool) take() (*conn, error) {
	c, mayDial := p.pick()
	switch {
	case c != nil:
		return c, nil
	case mayDial:
		return p.make()
	default:
		return p.await()
	}
}

// pick takes an idle connection, or a place for a new one.
func (p *pool) pick() (c *conn, mayDial bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		c = p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		return c, false
	}
	if p.open == p.most {
		return nil, false
	}
	p.open++
	return nil, true
}

// await is for those who find all connections in use.
func (p *pool) await() (*conn, error) {
	turn := make(chan *conn, 1)
	p.mu.Lock()
	p.waiting = append(p.waiting, turn)
	p.waits++
	p.mu.Unlock()
	patience := time.NewTimer(connWait)
	defer patience.Stop()
	select {
	case c := <-turn:
		return p.orMake(c)
	case <-patience.C:
	}
	p.mu.Lock()
	n := slices.Index(p.waiting, turn)
	if n >= 0 {
		p.waiting = slices.Delete(p.waiting, n, n+1)
		p.timedOut++
	}
	p.mu.Unlock()
	if n < 0 {
		return p.orMake(<-turn) // it came at the last moment
	}
	return nil, ErrBusy
}

func (p *pool) orMake(c *conn) (*conn, error) {
	if c == nil {
		return p.make()
	}
	return c, nil
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
	case len(p.waiting) > 0:
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
	if len(p.waiting) > 0 {
		p.next() <- nil
		return
	}
	p.open--
}

// next is the first of those who wait; its channel has room.
func (p *pool) next() chan *conn {
	first := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
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
