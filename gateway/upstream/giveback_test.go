//go:build linux

package upstream_test

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
)

// POSTs that wait for a core whose network is cut off go to another core as soon as the first dial has failed, as they would if they were sent alone:
// those that wait for a permit, and those of a batch that dials.
func TestGroup_GivesQueueBack(t *testing.T) {
	t.Parallel()
	const posts = 300
	works := startCore(t, name("here"))
	works.batches.Store(true)
	cut, err := url.Parse(silent(t))
	if err != nil {
		t.Fatal(err)
	}
	lost := startCore(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	lost.batches.Store(true)
	c := newClient(t, settings{}, lost.URL, works.URL)
	for _, core := range c.set.All() {
		asynctest.Eventually(t, "the cores are known to serve batches", core.Batches)
	}
	c.set.All()[1].Begin() // so that the others are asked first
	all := c.set.All()
	all[0].Address = cut.Host // the route to the core breaks
	var running sync.WaitGroup
	began := time.Now()
	for n := range posts {
		running.Go(func() {
			if got := c.answer(batched(fmt.Sprint(n))); got != "here" {
				t.Errorf("%d: answered %q", n, got)
			}
		})
	}
	running.Wait()
	// A dial takes a second, and a busy machine its time; one dial after the other takes two and more.
	if took := time.Since(began); took > 1800*time.Millisecond {
		t.Errorf("the last was answered after %s", took)
	} else {
		t.Logf("all were answered after %s", took)
	}
}
