package gateways_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/testkit/metricstest"
)

func TestKeyFeed_SharedReading(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	s := webtest.Start(t, webtest.MeasuredBy(registry))
	ann := s.SignUp(t, "ann@example.com")
	made := s.CreateKey(t, `{"name":"ci"}`, ann)
	const readingsName = "intents_core_key_feed_readings_total"
	const gateways = 60
	var following, told sync.WaitGroup
	var polls atomic.Int64
	following.Add(gateways)
	for range gateways {
		told.Go(func() {
			cursor := poll(t, s, "", "0s").Cursor
			following.Done()
			for {
				got := poll(t, s, cursor, "250ms")
				polls.Add(1)
				if slices.Contains(got.Hashes, webtest.HashOf(made.Key)) || t.Failed() {
					return
				}
				cursor = got.Cursor
			}
		})
	}
	following.Wait() // which took prompt readings
	before, began := metricstest.Values(t, registry)[readingsName], time.Now()
	<-time.After(700 * time.Millisecond) // in which all of them poll, and nothing happens
	pgtest.Exec(t, s.Store, `UPDATE api_keys SET enabled = false`)
	told.Wait()
	took, read := time.Since(began), int(metricstest.Values(t, registry)[readingsName]-before)
	t.Logf("%d polls of %d gateways in %s: %d readings", polls.Load(), gateways, took, read)
	if most := int(took/(100*time.Millisecond)) + 1; read > most {
		t.Errorf("%d readings, at most %d are due", read, most)
	}
	if polls.Load() < 2*gateways {
		t.Errorf("%d polls of %d gateways prove nothing", polls.Load(), gateways)
	}
}

// However many gateways ask for the changes at once, core reads them fifty times a second at most, and does not let them
// wait for the next reading that is due.
func TestKeyFeed_PromptReading(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	s := webtest.Start(t, webtest.MeasuredBy(registry))
	const readingsName = "intents_core_key_feed_readings_total"
	const gateways, each = 20, 25
	before, began := metricstest.Values(t, registry)[readingsName], time.Now()
	var asking sync.WaitGroup
	ask := func() (fastest time.Duration) {
		cursor := poll(t, s, "", "0s").Cursor
		fastest = time.Hour
		for range each {
			asked := time.Now()
			cursor = poll(t, s, cursor, "0s").Cursor
			fastest = min(fastest, time.Since(asked))
		}
		return fastest
	}
	for range gateways {
		asking.Go(func() { ask() })
	}
	asking.Wait()
	took, read := time.Since(began), int(metricstest.Values(t, registry)[readingsName]-before)
	t.Logf("%d polls in %s: %d readings", gateways*(each+1), took, read)
	if most := int(took/(20*time.Millisecond)) + 1; read > most {
		t.Errorf("%d readings, at most %d are due", read, most)
	}
	// One gateway after another reading waits for the next. On a busy machine that takes long too, but not each time.
	if fastest := ask(); fastest > 70*time.Millisecond {
		t.Errorf("the fastest poll took %s: it waits for the readings of long polls", fastest)
	}
}

// One gateway's nonsense is its own affair.
func TestKeyFeed_CursorsApart(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	cursor := poll(t, s, "", "0s").Cursor
	made := s.CreateKey(t, `{"name":"ci"}`, ann)
	later := poll(t, s, cursor, "0s").Cursor
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			if got := s.Call(t, "GET", "/internal/key-changes?wait=0s&after=nonsense", ""); got.Status != http.StatusGone {
				t.Errorf("nonsense: %+v", got)
			}
		})
		asking.Go(func() {
			if got := poll(t, s, cursor, "0s"); !slices.Equal(got.Hashes, []string{webtest.HashOf(made.Key)}) {
				t.Errorf("before the change: told of %q", strings.Join(got.Hashes, ","))
			}
		})
		asking.Go(func() {
			if got := poll(t, s, later, "0s"); len(got.Hashes) > 0 {
				t.Errorf("after the change: told of %q", got.Hashes)
			}
		})
	}
	asking.Wait()
}
