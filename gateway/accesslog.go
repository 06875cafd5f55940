package main

import (
	"context"
	"io"
	"sync"
	"time"
)

const (
	// lineBufferBytes is how much is gathered before it is written: one system call for a few hundred lines.
	lineBufferBytes = 64 << 10
	// lineBufferDelay is how long a line may wait.
	lineBufferDelay = 100 * time.Millisecond
)

// lineBuffer gathers log lines, so that a request does not cost a system call. Lines stay whole.
type lineBuffer struct {
	mu  sync.Mutex
	out io.Writer
	buf []byte
}

func newLineBuffer(out io.Writer) *lineBuffer {
	return &lineBuffer{out: out, buf: make([]byte, 0, lineBufferBytes)}
}

// Write takes one or more whole lines.
func (b *lineBuffer) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.buf)+len(lines) > cap(b.buf) {
		if err := b.flushLocked(); err != nil {
			return 0, err
		}
	}
	b.buf = append(b.buf, lines...)
	return len(lines), nil
}

func (b *lineBuffer) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flushLocked()
}

func (b *lineBuffer) flushLocked() error {
	if len(b.buf) == 0 {
		return nil
	}
	_, err := b.out.Write(b.buf)
	b.buf = b.buf[:0]
	return err
}

// run writes what has gathered at least every lineBufferDelay, until ctx ends.
func (b *lineBuffer) run(ctx context.Context) {
	ticker := time.NewTicker(lineBufferDelay)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = b.flush() // standard output is gone; there is nobody to tell
		case <-ctx.Done():
			return
		}
	}
}
