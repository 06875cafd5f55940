package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// driven are the clients of drive, each of which has one request under way.
const driven = 6

// traffic is clients that read and write through both gateways until they are stopped.
type traffic struct {
	clients  sync.WaitGroup
	stopped  chan struct{}
	answered atomic.Int64
	mu       sync.Mutex
	failures []string
}

func (l *live) drive() *traffic {
	f := &traffic{stopped: make(chan struct{})}
	for n := range driven {
		c := apiClient(l.t, l.env.TestKey)
		c.base = l.env.GatewayURLs[n%len(l.env.GatewayURLs)]
		f.clients.Go(func() {
			ticker := time.NewTicker(8 * time.Millisecond)
			defer ticker.Stop()
			for turn := 0; ; turn++ {
				select {
				case <-f.stopped:
					return
				case <-ticker.C:
					f.ask(c, turn)
				}
			}
		})
	}
	l.t.Cleanup(f.stop)
	return f
}

func (f *traffic) stop() {
	select {
	case <-f.stopped:
	default:
		close(f.stopped)
	}
	f.clients.Wait()
}

// ask makes a request: lists that no cache answers, new intents, and now and then a key that nobody has, which core is asked
// about.
func (f *traffic) ask(c *client, turn int) {
	var a answer
	var err error
	want := http.StatusOK
	switch {
	case turn%16 == 0:
		strange := *c
		strange.key = "sk_test_" + strings.Repeat(strings.ReplaceAll(uuid.NewString(), "-", ""), 2)
		a, err = strange.try(http.MethodGet, "/v2/tokens", nil)
		want = http.StatusForbidden
	case turn%4 == 0:
		a, err = c.try(http.MethodPost, "/v2/transfers", body(on(11155111, alice), on(11155111, usdc), "1", on(11155111, bob), "", ""))
		want = http.StatusCreated
	default:
		a, err = c.try(http.MethodGet, "/v2/transfers?limit=1", nil)
	}
	f.answered.Add(1)
	if err != nil || a.Status != want {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failures = append(f.failures, fmt.Sprintf("%d %v %s, want %d", a.Status, err, a.Body, want))
	}
}

// more waits until so many further requests have been answered.
func (f *traffic) more(t *testing.T, count int64) {
	t.Helper()
	until := f.answered.Load() + count
	eventually(t, func() error {
		if f.answered.Load() < until {
			return errors.New("clients get no answers")
		}
		return nil
	})
}
