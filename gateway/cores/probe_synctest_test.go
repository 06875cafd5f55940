package cores_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

func TestProbe_EjectsAndRestores(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]cores.State{"hangs": cores.Down, "drains": cores.Draining} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSet(t, nil, "http://192.0.2.1")
				core, stand := s.All()[0], s.transport(0)
				s.run(t)
				asynctest.Eventually(t, "it is probed", func() bool { return stand.probes.Load() > 0 })
				generation := core.Generation()
				stand.result.Store(&result{state, errors.New("the reason")})
				began := time.Now()
				asynctest.Eventually(t, "it is ejected", func() bool { return !core.Up() })
				if took := time.Since(began); took > time.Second {
					t.Errorf("ejected %s after it began", took)
				}
				if core.Down() != (state == cores.Down) || core.Generation() == generation {
					t.Errorf("down: %t; its idle connections are kept: %t", core.Down(), core.Generation() == generation)
				}
				s.expectMetrics(t, core, 0, 1)
				time.Sleep(time.Minute)
				if unready := s.Unready(); unready < time.Minute {
					t.Errorf("a core was ready %s ago", unready)
				}
				stand.result.Store(nil)
				began = time.Now()
				asynctest.Eventually(t, "it is back", core.Up)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("back %s after it was over", took)
				}
				s.expectMetrics(t, core, 1, 1)
				synctest.Wait()
				text := s.log.String()
				if strings.Count(text, "\n") != 2 || !strings.Contains(text, `msg="core ejected" core=192.0.2.1:80 error="the reason"`) ||
					!strings.Contains(text, `msg="core up again"`) {
					t.Errorf("logged:\n%s", text)
				}
			})
		})
	}
}

func (s set) expectMetrics(t *testing.T, core *cores.Core, up, ejected float64) {
	t.Helper()
	values := metricstest.Values(t, s.registry)
	gotUp, gotEjected := values["intents_gateway_core_up "+core.Address], values["intents_gateway_core_ejections_total "+core.Address]
	if gotUp != up || gotEjected != ejected {
		t.Errorf("up %g, ejected %g times; want %g and %g", gotUp, gotEjected, up, ejected)
	}
}

// What one request came to is no proof: a core that answers its probe is back at once, and nobody is told.
func TestMarkFailed_ProbesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, nil, "http://192.0.2.1")
		core, stand := s.All()[0], s.transport(0)
		s.run(t)
		synctest.Wait()
		generation, began := core.Generation(), time.Now()
		core.MarkFailed()
		asynctest.Eventually(t, "it is back", core.Up)
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("back after %s", took)
		}
		if core.Generation() != generation || s.log.String() != "" {
			t.Errorf("its idle connections are given up: %t; logged: %s", core.Generation() != generation, s.log)
		}
		probes := stand.probes.Load()
		core.ProbeNow()
		time.Sleep(50 * time.Millisecond)
		if got := stand.probes.Load() - probes; got != 1 {
			t.Errorf("it is probed %d times", got)
		}
	})
}
