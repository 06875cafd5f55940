package embedded

import (
	"bytes"
	"strings"
	"sync"
)

// maxLine bounds the memory for a child that never ends its line. Longer lines are split.
const maxLine = 64 << 10

// lineWriter calls emit with each line that is written to it. It is for one goroutine at a time.
type lineWriter struct {
	emit    func(line string)
	partial []byte
}

func (w *lineWriter) Write(text []byte) (int, error) {
	w.partial = append(w.partial, text...)
	for {
		end := bytes.IndexByte(w.partial, '\n')
		if end < 0 && len(w.partial) < maxLine {
			return len(text), nil
		}
		if end < 0 {
			w.flush()
			continue
		}
		w.emit(strings.TrimSuffix(string(w.partial[:end]), "\r"))
		w.partial = w.partial[end+1:]
	}
}

// flush emits a last line without a line ending.
func (w *lineWriter) flush() {
	if len(w.partial) == 0 {
		return
	}
	w.emit(string(w.partial))
	w.partial = nil
}

// tail keeps the last lines of a child's output for its error. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const tailLines = 8

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if strings.TrimSpace(line) == "" {
		return
	}
	t.lines = append(t.lines, line)
	if len(t.lines) > tailLines {
		t.lines = t.lines[1:]
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	for _, line := range t.lines {
		text.WriteString("\n    " + line)
	}
	return text.String()
}
