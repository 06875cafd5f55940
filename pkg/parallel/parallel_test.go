package parallel_test

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"intents.internal/pkg/parallel"
)

func TestMain(m *testing.M) {
	parallel.Tests("100")
	os.Exit(m.Run())
}

// Each waits for all, so all must run at the same time, on any number of cores.
func TestRunBesideEachOther(t *testing.T) {
	t.Parallel()
	var met atomic.Int64
	all := make(chan struct{})
	late := time.Now().Add(20 * time.Second)
	for range 90 {
		t.Run("one", func(t *testing.T) {
			t.Parallel()
			if met.Add(1) == 90 {
				close(all)
			}
			select {
			case <-all:
			case <-time.After(time.Until(late)):
				t.Error("the others do not run")
			}
		})
	}
}
