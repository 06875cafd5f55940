package stack

import (
	"fmt"
	"io"
	"sync"
)

// processLog writes the lines of several processes to one writer, each with the name of its process.
type processLog struct {
	mu  sync.Mutex
	out io.Writer
}

func newLog(out io.Writer) *processLog { return &processLog{out: out} }

// writer returns a function that writes lines of the named process.
func (l *processLog) writer(name string) func(line string) {
	return func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		// A closed pipe must not stop the stack.
		_, _ = fmt.Fprintf(l.out, "%-9s | %s\n", name, line)
	}
}

// print writes a line of the stack itself.
func (l *processLog) print(line string) { l.writer("stack")(line) }
