package telemetry

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// logBatchBytes is the size of a batch that is written without further delay; one system call writes a few hundred lines.
	logBatchBytes = 64 << 10
	// logCloseTimeout bounds how long Close waits for a stalled reader.
	logCloseTimeout = 2 * time.Second
)

// LogWriterOptions are a LogWriter's settings. All are required unless stated otherwise.
type LogWriterOptions struct {
	// Service is the service's name in the line that reports dropped lines.
	Service string
	// MaxBytes bounds the queued lines. The batch that is being written may have as many again.
	MaxBytes int
	// Delay is how long a line may wait for others to be written in the same batch; 0 writes it at once.
	Delay time.Duration
}

// LogWriter writes log lines in its own goroutine, so that a stalled reader of standard output does not block logging. Lines
// beyond MaxBytes are dropped and counted, and a line in their place reports the count. It is safe for concurrent use.
type LogWriter struct {
	out     io.Writer
	options LogWriterOptions
	dropped atomic.Uint64

	mu      sync.Mutex
	waiting []byte
	// unreported counts the dropped lines since the last report.
	unreported int
	closed     bool

	wake, closing, done chan struct{}
}

// NewLogWriter starts a writer. Close must be called.
func NewLogWriter(out io.Writer, o LogWriterOptions) *LogWriter {
	w := &LogWriter{out: out, options: o, wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

// Dropped returns the count of dropped lines as a metric with the given name.
func (w *LogWriter) Dropped(name string) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: name,
		Help: "Log lines dropped because standard output was not read fast enough, or could not be written. A rise means that the log " +
			"collector stalls; a line in the log reports each gap.",
	}, func() float64 { return float64(w.dropped.Load()) })
}

// Write queues one or more whole lines. It never blocks on the output and never fails.
func (w *LogWriter) Write(lines []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.waiting)
	after := before + len(lines)
	if w.closed || after > w.options.MaxBytes {
		w.drop(lines)
		return len(lines), nil
	}
	w.waiting = append(w.waiting, lines...)
	if before == 0 || before < logBatchBytes && after >= logBatchBytes {
		select {
		case w.wake <- struct{}{}:
		default: // already woken
		}
	}
	return len(lines), nil
}

func (w *LogWriter) drop(lines []byte) {
	count := bytes.Count(lines, []byte("\n"))
	w.unreported += count
	w.dropped.Add(uint64(count)) //nolint:gosec // a count is not negative
}

// Close writes the queued lines within logCloseTimeout. It returns an error if lines are lost. Later lines are dropped.
func (w *LogWriter) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.closing)
	}
	w.mu.Unlock()
	timeout := time.NewTimer(logCloseTimeout)
	defer timeout.Stop()
	select {
	case <-w.done:
		return nil
	case <-timeout.C:
		return errors.New("write the last log lines: standard output is not read")
	}
}

func (w *LogWriter) run() {
	defer close(w.done)
	var batch []byte
	for open := true; open; {
		open = w.await()
		lines, unreported := w.next(batch[:0])
		if batch = w.withReport(lines, unreported); len(batch) == 0 {
			continue
		}
		if n, err := w.out.Write(batch); err != nil {
			w.mu.Lock()
			w.drop(lines[min(n, len(lines)):])
			w.unreported += unreported
			w.mu.Unlock()
		}
		if cap(batch) > 4*logBatchBytes {
			batch = nil // grown during a stall only
		}
	}
}

// await blocks until there is something to write, and reports whether the writer is still open.
func (w *LogWriter) await() (open bool) {
	select {
	case <-w.wake:
	case <-w.closing:
		return false
	}
	if w.options.Delay == 0 || w.isDue() {
		return true
	}
	delay := time.NewTimer(w.options.Delay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-w.wake: // a batch is full
	case <-w.closing:
		return false
	}
	return true
}

// isDue reports whether to write at once: a full batch, or the end of a stall.
func (w *LogWriter) isDue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) >= logBatchBytes || w.unreported > 0
}

// next returns the queued lines and the count of lines dropped after them. empty becomes the new queue.
func (w *LogWriter) next(empty []byte) (lines []byte, unreported int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, unreported = w.waiting, w.unreported
	w.waiting, w.unreported = empty, 0
	return lines, unreported
}

// withReport returns the lines, followed by a line with the count of those dropped after them, if any.
func (w *LogWriter) withReport(lines []byte, unreported int) []byte {
	if unreported == 0 {
		return lines
	}
	whole := bytes.NewBuffer(lines)
	NewLogger(whole, w.options.Service).Warn("log lines were dropped: standard output was not read fast enough", "lines", unreported)
	return whole.Bytes()
}
