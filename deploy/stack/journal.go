package stack

import (
	"fmt"
	"io"
	"sync"
)

// journal writes the lines of many processes to one place, each led by who says it.
type journal struct {
	mu  sync.Mutex
	out io.Writer
}

func newJournal(out io.Writer) *journal { return &journal{out: out} }

// writer is where name's lines go.
func (j *journal) writer(name string) func(line string) {
	return func(line string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		// A reader that has gone away must not stop the stack.
		_, _ = fmt.Fprintf(j.out, "%-9s | %s\n", name, line)
	}
}

// say writes the stack's own words.
func (j *journal) say(line string) { j.writer("stack")(line) }
