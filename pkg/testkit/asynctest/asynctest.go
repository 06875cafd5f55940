// Package asynctest lets tests wait for concurrent work.
package asynctest

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Eventually polls holds until it returns true, and fails the test after a minute.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			tb.Fatalf("not within a minute: %s", what)
		}
	}
}

// Succeeds repeats do every 100 ms until it returns nil, and fails the test with its error after a minute.
func Succeeds(tb testing.TB, do func() error) {
	tb.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatal(err)
		}
	}
}

// Completes returns once the work is complete, and fails the test after a minute without progress.
func Completes(tb testing.TB, what string, state func() (progress int, complete bool)) {
	tb.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	last := -1
	for deadline := time.Now(); ; <-ticker.C {
		progress, complete := state()
		switch {
		case complete:
			return
		case progress != last:
			last, deadline = progress, time.Now().Add(time.Minute)
		case time.Now().After(deadline):
			tb.Fatalf("no progress for a minute after %d: %s", progress, what)
		}
	}
}

// Buffer collects a log that can be read while it is written.
type Buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

// String returns everything that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// AtOnce calls do in n goroutines, again and again, until one call reports that it is done.
func AtOnce(n int, do func() (done bool)) {
	var done atomic.Bool
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			for !done.Load() {
				if do() {
					done.Store(true)
				}
			}
		})
	}
	calls.Wait()
}
