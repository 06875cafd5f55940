package cores_test

import (
	"testing"
	"testing/synctest"
	"time"

	"intents.internal/gateway/cores"
)

// A core that fails at once has no queue, and still gets few requests, at any rate; once it works, it has its share again.
func TestPick_FailsFast(t *testing.T) {
	t.Parallel()
	const latency = 20 * time.Millisecond
	for name, pause := range map[string]time.Duration{"1000/s": time.Millisecond, "200/s": 5 * time.Millisecond, "10/s": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSet(t, nil, "http://a:1", "http://b:1")
				failing, broken := s.All()[0], true
				// share is the failing core's share of the requests within a time.
				share := func(d time.Duration) float64 {
					requests, its := 0.0, 0.0
					for began := time.Now(); time.Since(began) < d; time.Sleep(pause) {
						core := s.Pick(cores.Tried{})
						requests++
						if core == failing {
							its++
						}
						if core == failing && broken {
							core.Fail()
							continue
						}
						core.Begin()
						time.AfterFunc(latency, core.End)
					}
					return its / requests
				}
				if got := share(20 * time.Second); got > 0.05 || got == 0 {
					t.Errorf("a core that fails gets %.3f of the requests", got)
				}
				broken = false
				share(12 * time.Second)
				if got := share(20 * time.Second); got < 0.45 {
					t.Errorf("a core that works again gets %.3f of the requests", got)
				}
			})
		})
	}
}

// Whatever a burst of failures, it is forgiven.
func TestPick_FailuresBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, nil, "http://a:1", "http://b:1")
		for range 100_000 {
			s.All()[0].Fail()
		}
		time.Sleep(12 * time.Second)
		picked := map[*cores.Core]int{}
		for range 10 {
			picked[s.Pick(cores.Tried{})]++
		}
		if picked[s.All()[0]] != 5 {
			t.Errorf("it is picked %d times of 10", picked[s.All()[0]])
		}
	})
}
