package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// edgeTable has the rows that edge measures in a closed loop. The others are compared with the named ones.
type edgeTable struct {
	rows                  []*row
	nginx, fixed, gateway *row
}

func (t *edgeTable) add(group string, rows ...*row) {
	for _, r := range rows {
		r.Group = group
		t.rows = append(t.rows, r)
	}
}

// filter drops the rows that do not match.
func (t *edgeTable) filter(wanted *regexp.Regexp) {
	t.rows = slices.DeleteFunc(t.rows, func(r *row) bool { return !wanted.MatchString(r.Group + ", " + r.Name) })
}

// figures are the medians of a row.
type figures struct {
	Group, Name, Missing    string
	Rate, P50, P99, Refused float64
	Proxy, Redis, Both      float64
	Core, Balance, Others   float64
	ToNginx, ToFixed        float64
	Turns                   []turn
}

func (r *row) figures() figures {
	f := figures{Group: r.Group, Name: r.Name, Missing: r.Missing, Turns: r.Turns}
	if r.Missing != "" {
		return f
	}
	f.Rate = r.medianOf(func(t turn) float64 { return t.Rate })
	f.P50 = r.medianOf(func(t turn) float64 { return t.P50 })
	f.P99 = r.medianOf(func(t turn) float64 { return t.P99 })
	f.Refused = r.medianOf(func(t turn) float64 { return t.Refused })
	f.Proxy = r.medianOf(func(t turn) float64 { return t.Proxy })
	f.Redis = r.medianOf(func(t turn) float64 { return t.Redis })
	f.Both = r.medianOf(turn.checks)
	f.Core = r.medianOf(func(t turn) float64 { return t.Core })
	f.Others = r.medianOf(func(t turn) float64 { return t.Others })
	f.Balance = r.medianOf(func(t turn) float64 { return t.Balance })
	return f
}

func (t *edgeTable) figures() []figures {
	all := make([]figures, len(t.rows))
	for n, r := range t.rows {
		all[n] = r.figures()
		if r.Missing != "" {
			continue
		}
		all[n].ToNginx = r.ratio(t.nginx)
		if r.Group == t.fixed.Group || r.Group == "unknown keys" {
			all[n].ToFixed = r.ratio(t.fixed)
		}
	}
	return all
}

func (t *edgeTable) print() {
	fmt.Print("\n| CPU µs a request | | requests/s | p50 ms | p99 ms | proxy | Redis | both | core | ÷ nginx | ÷ fixed reply |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, f := range t.figures() {
		if f.Missing != "" {
			fmt.Printf("| %s | %s | %s | | | | | | | | |\n", f.Group, f.Name, f.Missing)
			continue
		}
		fmt.Printf("| %s | %s | %.0f | %.2f | %.2f | %.1f | %.1f | %.1f | %.1f | %s | %s |\n", f.Group, f.Name,
			f.Rate, f.P50, f.P99, f.Proxy, f.Redis, f.Both, f.Core, orNone(f.ToNginx), orNone(f.ToFixed))
	}
	printOthers(t.rows)
}

// printOthers prints how much of the machine other programs used.
func printOthers(rows []*row) {
	var shares []float64
	for _, r := range rows {
		for _, t := range r.Turns {
			shares = append(shares, 100*t.Others)
		}
	}
	fmt.Printf("\nOther programs took %.0f %% of the machine in the median turn and %.0f %% in the worst.\n", median(shares), slices.Max(shares))
}

func orNone(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", ratio)
}

// constantRow is one address that gets a constant load.
type constantRow struct {
	Name    string
	address string
	request func(n int) []byte
	missing bool
	Turns   []constantResult
}

func (r *constantRow) medianOf(figure func(constantResult) float64) float64 {
	values := make([]float64, len(r.Turns))
	for n, s := range r.Turns {
		values[n] = figure(s)
	}
	return median(values)
}

func p50(s constantResult) float64  { return milliseconds(s.P50) }
func p99(s constantResult) float64  { return milliseconds(s.P99) }
func p999(s constantResult) float64 { return milliseconds(s.P999) }

// printConstant prints the rows and compares them with the first, which is core without a proxy.
func printConstant(rate float64, rows []*constantRow) {
	fmt.Printf("\n| %.0f requests/s, ms from when each was due | p50 | p99 | p99.9 | sent late, p99 | added, p50 | added, p99 |\n"+
		"| --- | --- | --- | --- | --- | --- | --- |\n", rate)
	for n, r := range rows {
		if r.missing {
			continue
		}
		fmt.Printf("| %s | %.2f | %.2f | %.2f | %.2f |", r.Name, r.medianOf(p50), r.medianOf(p99), r.medianOf(p999),
			r.medianOf(func(s constantResult) float64 { return milliseconds(s.LateP99) }))
		if n == 0 {
			fmt.Println(" | |")
			continue
		}
		fmt.Printf(" %.2f | %.2f |\n", r.added(rows[0], p50), r.added(rows[0], p99))
	}
}

// added is the median, over the rounds, of a figure of r minus that of base in the same round.
func (r *constantRow) added(base *constantRow, figure func(constantResult) float64) float64 {
	values := make([]float64, len(r.Turns))
	for n, s := range r.Turns {
		values[n] = figure(s) - figure(base.Turns[n])
	}
	return median(values)
}

// write writes edge.json.
func (t *edgeTable) write(dir string, constant []*constantRow) error {
	return writeOutput(dir, "edge", map[string]any{"closedLoop": t.figures(), "constantRate": constant})
}

func writeOutput(dir, name string, data any) error {
	text, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".json", append(text, '\n'), 0o644); err != nil {
		return err
	}
	fmt.Printf("\nwritten: %s.json; the log of the processes: %s.log\n", path, path)
	return nil
}
