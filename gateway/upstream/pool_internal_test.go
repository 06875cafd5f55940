package upstream

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/telemetry"
)

// counted counts the connections that are open.
type counted struct {
	net.Conn
	open *atomic.Int64
}

func (c counted) Close() error {
	c.open.Add(-1)
	return nil
}

// newPool makes a pool of connections that lead nowhere.
func newPool(most int) (p *pool, open *atomic.Int64) {
	open = &atomic.Int64{}
	return &pool{maxConns: most, dial: func(context.Context, time.Time) (*coreConn, error) {
		open.Add(1)
		return &coreConn{Conn: counted{open: open}}, nil
	}}, open
}

func take(t *testing.T, p *pool) *coreConn {
	t.Helper()
	c, err := p.get(t.Context(), false, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPool_MostRecentlyUsed(t *testing.T) {
	t.Parallel()
	p, open := newPool(3)
	first, second := take(t, p), take(t, p)
	p.put(first, time.Now())
	p.put(second, time.Now())
	if got := take(t, p); got != second {
		t.Error("the connection that rested longer is given out")
	}
	p.put(second, time.Now())
	if got := open.Load(); got != 2 {
		t.Errorf("%d connections are open, want 2", got)
	}
	p.close()
	if got := open.Load(); got != 0 {
		t.Errorf("%d connections are open after the end", got)
	}
}

func TestPool_MaxConns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, open := newPool(2)
		first := take(t, p)
		take(t, p)
		began := time.Now()
		if _, err := p.get(t.Context(), false, time.Now().Add(time.Minute)); !errors.Is(err, ErrBusy) || time.Since(began) != connWait {
			t.Errorf("the third gets %v after %s", err, time.Since(began))
		}
		want := telemetry.PoolState{Limit: 2, Open: 2, InUse: 2, Waits: 1, TimedOut: 1}
		if diff := cmp.Diff(want, p.state()); diff != "" {
			t.Error(diff)
		}
		var got []*coreConn
		var turns sync.WaitGroup
		turns.Go(func() { got = append(got, take(t, p)) })
		synctest.Wait()
		p.put(first, time.Now())
		turns.Wait()
		if got[0] != first {
			t.Error("who waits does not get what comes back")
		}
		turns.Go(func() { got = append(got, take(t, p)) })
		synctest.Wait()
		p.discard(first)
		turns.Wait()
		if got[1] == first || open.Load() != 2 {
			t.Errorf("who waits does not get the place of what was dropped; %d are open", open.Load())
		}
	})
}

// A place must not be lost with a connection that could not be made.
func TestPool_FailedDial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(1)
		dial := p.dial
		var broken atomic.Bool
		p.dial = func(ctx context.Context, deadline time.Time) (*coreConn, error) {
			fails := broken.Load()
			<-time.After(connWait / 2)
			if fails {
				return nil, errors.New("nobody there")
			}
			return dial(ctx, deadline)
		}
		broken.Store(true)
		for range 3 {
			if _, err := p.get(t.Context(), false, time.Now().Add(time.Minute)); !errors.Is(err, ErrUnreachable) {
				t.Errorf("error %v", err)
			}
		}
		var turns sync.WaitGroup
		turns.Go(func() { _, _ = p.get(t.Context(), false, time.Now().Add(time.Minute)) })
		synctest.Wait()
		turns.Go(func() { take(t, p) }) // it waits for the one above, whose dial fails
		synctest.Wait()
		broken.Store(false)
		turns.Wait()
		if got := p.state().Open; got != 1 {
			t.Errorf("%d places are taken, want 1", got)
		}
	})
}

func TestPool_IdleTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, open := newPool(4)
		first, second, third := take(t, p), take(t, p), take(t, p)
		p.put(first, time.Now())
		<-time.After(idleTimeout / 2)
		p.put(second, time.Now())
		<-time.After(idleTimeout / 2)
		synctest.Wait()
		if got := open.Load(); got != 2 {
			t.Errorf("%d are open when the first has rested too long, want 2", got)
		}
		<-time.After(idleTimeout)
		synctest.Wait()
		if got := open.Load(); got != 1 {
			t.Errorf("%d are open when the second has too, want the one in use", got)
		}
		p.close()
		p.put(third, time.Now())
		if open.Load() != 0 || p.state().Open != 0 {
			t.Errorf("%d are open after the end", open.Load())
		}
	})
}

// The bubble's clock advances only when all its goroutines wait, so ErrBusy means that a request waits which nobody will wake.
func TestPool_PutWhileQueueing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rounds = 20_000
		p, _ := newPool(1)
		lost := 0
		held := take(t, p)
		for round := range rounds {
			var second sync.WaitGroup
			var started atomic.Bool
			second.Go(func() {
				started.Store(true)
				c, err := p.get(t.Context(), false, time.Now().Add(time.Minute))
				if err != nil {
					lost++
					return
				}
				p.put(c, time.Now())
			})
			for !started.Load() {
				runtime.Gosched()
			}
			for range round % 64 { // so that the return meets every step of the other's taking
				_ = started.Load()
			}
			p.put(held, time.Now())
			second.Wait()
			held = take(t, p)
		}
		if lost > 0 {
			t.Errorf("%d of %d requests waited out %s beside an idle connection", lost, rounds, connWait)
		}
		p.put(held, time.Now())
		p.close()
	})
}

// A fresh connection costs at most one idle one, and only where there is no room for both.
func TestPool_NewConnKeepsIdle(t *testing.T) {
	t.Parallel()
	p, open := newPool(3)
	defer p.close()
	first, second := take(t, p), take(t, p)
	p.put(first, time.Now())
	p.put(second, time.Now())
	fresh := func() *coreConn {
		t.Helper()
		c, err := p.get(t.Context(), true, time.Now().Add(time.Minute))
		if err != nil || c == first || c == second {
			t.Fatalf("an idle connection is given out, or %v", err)
		}
		return c
	}
	third := fresh()
	if got := open.Load(); got != 3 {
		t.Errorf("%d connections are open beside the fresh one, want 2", got-1)
	}
	fresh()
	if diff := cmp.Diff(telemetry.PoolState{Limit: 3, Open: 3, InUse: 2}, p.state()); diff != "" || open.Load() != 3 {
		t.Errorf("with %d open connections: %s", open.Load(), diff)
	}
	p.put(third, time.Now())
	if got := take(t, p); got != third {
		t.Error("what came back is not given out")
	}
	if got := take(t, p); got != second {
		t.Error("the connection idle for longest was kept")
	}
}
