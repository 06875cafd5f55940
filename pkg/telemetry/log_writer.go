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
	// logBatchBytes is how much is written without further delay; one system call carries a few hundred lines.
	logBatchBytes = 64 << 10
	// logCloseTimeout bounds the wait for a reader that stalls at the end.
	logCloseTimeout = 2 * time.Second
)

// LogWriterOptions are a LogWriter's settings; all must be set unless said otherwise.
type LogWriterOptions struct {
	// Service is the name of the service in the line that reports dropped lines.
	Service string
	// MaxBytes bounds the lines that wait to be written. As many may be in the batch that is being written.
	MaxBytes int
	// Delay is how long a line may wait for others to be written with it; 0 writes it at once.
	Delay time.Duration
}

// LogWriter writes log lines in its own goroutine, so that a stalled reader of standard output does not block callers. Lines
// beyond MaxBytes are dropped and counted, and a line in their place reports their number. It is safe for concurrent use.
type LogWriter struct {
	out     io.Writer
	options LogWriterOptions
	dropped atomic.Uint64

	mu      sync.Mutex
	waiting []byte
	// unreported counts the dropped lines that no line has reported yet.
	unreported int
	closed     bool

	wake, closing, done chan struct{}
}

// NewLogWriter starts a writer, which must be closed.
func NewLogWriter(out io.Writer, o LogWriterOptions) *LogWriter {
	w := &LogWriter{out: out, options: o, wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

// Dropped is the count of lines that were dropped, as a metric of that name.
func (w *LogWriter) Dropped(name string) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: name,
		Help: "Log lines dropped because standard output was not read fast enough, or could not be written. A rise means that the log " +
			"collector stalls; a line in the log reports each gap.",
	}, func() float64 { return float64(w.dropped.Load()) })
}

// Write takes one or more whole lines. It never waits for the output, and never fails.
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
		default: // it is awake
		}
	}
	return len(lines), nil
}

func (w *LogWriter) drop(lines []byte) {
	count := bytes.Count(lines, []byte("\n"))
	w.unreported += count
	w.dropped.Add(uint64(count)) //nolint:gosec // a count is not negative
}

// Close writes what waits, for at most logCloseTimeout. Its error says that lines are lost. Later lines are dropped.
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
			batch = nil // memory that only a stall needs
		}
	}
}

// await waits until there is something to write, and reports whether more may come.
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

// isDue reports whether there is enough to write at once: a full batch, or the end of a stall.
func (w *LogWriter) isDue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) >= logBatchBytes || w.unreported > 0
}

// next takes the lines that wait, and the count of those dropped after them. Empty is where new lines go.
func (w *LogWriter) next(empty []byte) (lines []byte, unreported int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, unreported = w.waiting, w.unreported
	w.waiting, w.unreported = empty, 0
	return lines, unreported
}

// withReport is the lines and, where some were dropped after them, one that says so.
func (w *LogWriter) withReport(lines []byte, unreported int) []byte {
	if unreported == 0 {
		return lines
	}
	whole := bytes.NewBuffer(lines)
	NewLogger(whole, w.options.Service).Warn("log lines were dropped: standard output was not read fast enough", "lines", unreported)
	return whole.Bytes()
}
