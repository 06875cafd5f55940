// Package asynctest has what tests need to look at something that works meanwhile.
package asynctest

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// Eventually returns when holds does, which is asked again and again, and fails the test after a minute.
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

// Buffer takes a log that is read while it is written.
type Buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

// String is all that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
