package forward

import (
	"errors"
	"net"
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
	return &pool{most: most, dial: func() (*conn, error) {
		open.Add(1)
		return &conn{Conn: counted{open: open}}, nil
	}}, open
}

func take(t *testing.T, p *pool) *conn {
	t.Helper()
	c, err := p.take()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPoolGivesOutWhatWasUsedLast(t *testing.T) {
	t.Parallel()
	p, open := newPool(3)
	first, second := take(t, p), take(t, p)
	p.give(first, time.Now())
	p.give(second, time.Now())
	if got := take(t, p); got != second {
		t.Error("the connection that rested longer is given out")
	}
	p.give(second, time.Now())
	if got := open.Load(); got != 2 {
		t.Errorf("%d connections are open, want 2", got)
	}
	p.close()
	if got := open.Load(); got != 0 {
		t.Errorf("%d connections are open after the end", got)
	}
}

func TestPoolIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, open := newPool(2)
		first := take(t, p)
		take(t, p)
		began := time.Now()
		if _, err := p.take(); !errors.Is(err, ErrBusy) || time.Since(began) != connWait {
			t.Errorf("the third gets %v after %s", err, time.Since(began))
		}
		want := telemetry.PoolState{Limit: 2, Open: 2, InUse: 2, Waits: 1, TimedOut: 1}
		if diff := cmp.Diff(want, p.state()); diff != "" {
			t.Error(diff)
		}
		var got []*conn
		var turns sync.WaitGroup
		turns.Go(func() { got = append(got, take(t, p)) })
		synctest.Wait()
		p.give(first, time.Now())
		turns.Wait()
		if got[0] != first {
			t.Error("who waits does not get what comes back")
		}
		turns.Go(func() { got = append(got, take(t, p)) })
		synctest.Wait()
		p.drop(first)
		turns.Wait()
		if got[1] == first || open.Load() != 2 {
			t.Errorf("who waits does not get the place of what was dropped; %d are open", open.Load())
		}
	})
}

// A place must not be lost with a connection that could not be made.
func TestPoolKeepsThePlacesOfFailedDials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(1)
		dial := p.dial
		var broken atomic.Bool
		p.dial = func() (*conn, error) {
			fails := broken.Load()
			<-time.After(connWait / 2)
			if fails {
				return nil, errors.New("nobody there")
			}
			return dial()
		}
		broken.Store(true)
		for range 3 {
			if _, err := p.take(); !errors.Is(err, ErrUnreachable) {
				t.Errorf("error %v", err)
			}
		}
		var turns sync.WaitGroup
		turns.Go(func() { _, _ = p.take() })
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

func TestPoolClosesWhatRestsTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, open := newPool(4)
		first, second, third := take(t, p), take(t, p), take(t, p)
		p.give(first, time.Now())
		<-time.After(idleTimeout / 2)
		p.give(second, time.Now())
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
		p.give(third, time.Now())
		if open.Load() != 0 || p.state().Open != 0 {
			t.Errorf("%d are open after the end", open.Load())
		}
	})
}
