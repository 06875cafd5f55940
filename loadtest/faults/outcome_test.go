package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// outcome is what one fault came to, as clients saw it. A field that was not measured is negative.
type outcome struct {
	// Fault says what was done, and what it was done to.
	Fault    string
	Gateways int
	// Requests were made from the fault's beginning until all was well again.
	Requests int
	// Errors are those that had no answer, or one of 500 and more.
	Errors int
	// OverAdmission is how many requests more than the limit one key had let through.
	OverAdmission int
	// AddedP99 is how much longer 99 in 100 requests took at most, against the time before the fault.
	AddedP99 time.Duration
	// Recovery is the time from the end of the fault until all was well.
	Recovery time.Duration
	// Note is whatever else is promised of this fault, measured.
	Note string
}

func (o outcome) cells() []string {
	return []string{o.Fault, fmt.Sprint(o.Gateways), fmt.Sprint(o.Requests), o.errorRate(), count(o.OverAdmission), millis(o.AddedP99), millis(o.Recovery), o.Note}
}

func (o outcome) errorRate() string {
	if o.Requests == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(o.Errors)/float64(o.Requests))
}

func (o outcome) String() string {
	return fmt.Sprintf("fault=%q gateways=%d requests=%d error rate=%s over-admission=%s added p99=%s recovery=%s %s",
		o.Fault, o.Gateways, o.Requests, o.errorRate(), count(o.OverAdmission), millis(o.AddedP99), millis(o.Recovery), o.Note)
}

func count(n int) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func millis(d time.Duration) string {
	if d < 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}

// mustLimit wants that no key had more let through beyond its limit than so many bursts, and what gateways without Redis let
// through each on its own: they continue from its last answer, so that is no more than what came back meanwhile.
func (o outcome) mustLimit(tb testing.TB, all samples, bursts int) {
	tb.Helper()
	if most := bursts*burst + o.Gateways*(all.refill()+1); o.OverAdmission > most {
		tb.Errorf("%s: %d requests of one key beyond the limit, more than %d", o.Fault, o.OverAdmission, most)
	}
}

// outcomes are gathered over the whole run.
var outcomes ledger

type ledger struct {
	mu      sync.Mutex
	all     []outcome
	skipped []string
}

// skip notes a latency that was not judged.
func (l *ledger) skip(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipped = append(l.skipped, line)
}

// unjudged lists the latencies that were not judged; it is empty where all were.
func (l *ledger) unjudged() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.skipped) == 0 {
		return ""
	}
	return fmt.Sprintf("%d latencies were not judged on this busy machine:\n%s\n", len(l.skipped), strings.Join(l.skipped, "\n"))
}

// tell prints the outcome and keeps it for the table.
func (l *ledger) tell(t *testing.T, o outcome) {
	t.Helper()
	t.Log(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, o)
}

// table is all outcomes, in columns that are read as they are and as Markdown; empty without any.
func (l *ledger) table() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return ""
	}
	rows := [][]string{{"fault", "gateways", "requests", "error rate", "over-admission", "added p99", "recovery", "besides"}, nil}
	slices.SortFunc(l.all, func(a, b outcome) int { return strings.Compare(a.Fault, b.Fault) })
	for _, o := range l.all {
		rows = append(rows, o.cells())
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for n, cell := range row {
			widths[n] = max(widths[n], len([]rune(cell)))
		}
	}
	var text strings.Builder
	text.WriteString("\n")
	for _, row := range rows {
		for n, width := range widths {
			cell := strings.Repeat("-", width)
			if row != nil {
				cell = row[n]
			}
			fmt.Fprintf(&text, "| %-*s ", width, cell)
		}
		text.WriteString("|\n")
	}
	text.WriteString("\n")
	return text.String()
}
