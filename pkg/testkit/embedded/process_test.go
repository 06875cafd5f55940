package embedded_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// starters are the two ways in which a child is kept from outliving its parent.
var starters = map[string]func(embedded.Command) (*embedded.Process, error){
	"kernel":   embedded.StartProcess,
	"watchdog": embedded.StartWithWatchdog,
}

func TestProcess_Stop(t *testing.T) {
	t.Parallel()
	for name, start := range starters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			polite := startAndAwaitLine(t, start, `trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
			if err := polite.Stop(syscall.SIGTERM, 10*time.Second); err != nil {
				t.Errorf("polite: %v", err)
			}
			deaf := startAndAwaitLine(t, start, `trap '' TERM; echo ready; while :; do sleep 0.01; done`)
			err := deaf.Stop(syscall.SIGTERM, 50*time.Millisecond)
			if err == nil || !strings.Contains(err.Error(), "was killed") {
				t.Errorf("deaf: %v", err)
			}
			if !gone(polite.PID()) || !gone(deaf.PID()) {
				t.Error("a stopped process is still there")
			}
		})
	}
}

func TestProcess_KillsGroup(t *testing.T) {
	t.Parallel()
	for name, start := range starters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := make(chan string, 1)
			p, err := start(embedded.Command{
				Path:   "sh",
				Args:   []string{"-c", "sleep 300 & echo $!; exit 0"},
				Output: func(line string) { child <- line },
			})
			if err != nil {
				t.Fatal(err)
			}
			<-p.Done()
			pid := number(t, <-child)
			asynctest.Eventually(t, "the grandchild is gone", func() bool { return gone(pid) })
		})
	}
}

func TestProcess_ParentKilled(t *testing.T) {
	t.Parallel()
	for role, count := range map[string]int{"guarded": 2, "job": 1} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			for _, line := range killedParent(t, role, count) {
				pid := number(t, line)
				asynctest.Eventually(t, "the child is gone", func() bool { return gone(pid) })
			}
		})
	}
}

func TestRun_ContextCanceled(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	err := embedded.Run(ctx, embedded.Command{
		Path:   "sh",
		Args:   []string{"-c", "echo started; sleep 300"},
		Output: func(string) { cancel(cause) },
	})
	if !errors.Is(err, cause) {
		t.Errorf("got %v, want the context's cause", err)
	}
}

func startAndAwaitLine(t *testing.T, start func(embedded.Command) (*embedded.Process, error), script string) *embedded.Process {
	t.Helper()
	ready := make(chan struct{})
	var once sync.Once
	p, err := start(embedded.Command{Path: "sh", Args: []string{"-c", script}, Output: func(string) {
		once.Do(func() { close(ready) })
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	return p
}
