package upstream_test

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// One exchange that breaks off says nothing of the other connections to a core that answers.
func TestRetry_KeepsIdleConnections(t *testing.T) {
	t.Parallel()
	const clients = 16
	for name, r := range map[string]request{"read": read, "list": list, "repeated write": repeatedWrite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var made atomic.Int64
			var breaks atomic.Bool
			var together atomic.Pointer[sync.WaitGroup]
			only := newCore(t, func(w http.ResponseWriter, r *http.Request) {
				if breaks.CompareAndSwap(true, false) {
					panic(http.ErrAbortHandler)
				}
				if all := together.Load(); all != nil {
					all.Done()
					all.Wait() // so that each has a connection of its own
				}
			})
			only.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					made.Add(1)
				}
			}
			only.Start()
			c := newClient(t, settings{unprobed: true}, only.URL)
			fan := func() {
				var all, here sync.WaitGroup
				here.Add(clients)
				together.Store(&here)
				for range clients {
					all.Go(func() {
						if _, err := c.do(r); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				together.Store(nil)
			}
			fan()
			breaks.Store(true)
			if _, err := c.do(r); err != nil || c.retries(t) != 1 {
				t.Fatalf("%v after %v retries", err, c.retries(t))
			}
			fan()
			// The one that broke off was replaced.
			if got := made.Load(); got != clients+1 {
				t.Errorf("%d connections were made, want %d: %d of %d idle ones survived", got, clients+1, 2*clients-got, clients-1)
			}
		})
	}
}
