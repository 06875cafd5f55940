package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
)

// medianOf returns the median of a figure over the turns.
func medianOf[T any](turns []T, figure func(T) float64) float64 {
	values := make([]float64, len(turns))
	for n, t := range turns {
		values[n] = figure(t)
	}
	return quantile(values, 0.5)
}

// medianRatio returns the median, over the rounds, of a figure relative to that of the base in the same round.
func medianRatio[T any](turns, base []T, figure func(T) float64) float64 {
	values := make([]float64, len(turns))
	for n, t := range turns {
		values[n] = figure(t) / figure(base[n])
	}
	return quantile(values, 0.5)
}

// quantile returns the q-quantile of values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// edgeTable has the rows that edge measures in a closed loop. The others are compared with the named ones.
type edgeTable struct {
	rows                  []*row
	nginx, fixed, gateway *row
}

// filterRows drops the rows that do not match.
func filterRows(rows []*row, wanted *regexp.Regexp) []*row {
	return slices.DeleteFunc(rows, func(r *row) bool { return !wanted.MatchString(r.Group + ", " + r.Name) })
}

func (t *edgeTable) print() {
	fmt.Print("\n| CPU µs a request | | requests/s | p50 ms | p99 ms | proxy | Redis | both | core | ÷ nginx | ÷ fixed reply |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	var others []float64
	for _, r := range t.rows {
		if r.Missing != "" {
			fmt.Printf("| %s | %s | %s | | | | | | | | |\n", r.Group, r.Name, r.Missing)
			continue
		}
		of := func(figure func(turn) float64) float64 { return medianOf(r.Turns, figure) }
		fixed := ""
		if r.Group != t.nginx.Group {
			fixed = r.ratio(t.fixed)
		}
		fmt.Printf("| %s | %s | %.0f | %.2f | %.2f | %.1f | %.1f | %.1f | %.1f | %s | %s |\n", r.Group, r.Name,
			of(turn.rate), of(func(t turn) float64 { return t.P50 }), of(func(t turn) float64 { return t.P99 }),
			of(func(t turn) float64 { return t.CPU["gateway"] }), of(func(t turn) float64 { return t.CPU["redis"] }), of(turn.edge),
			of(func(t turn) float64 { return t.CPU["core"] }), r.ratio(t.nginx), fixed)
		for _, t := range r.Turns {
			others = append(others, 100*t.Others)
		}
	}
	fmt.Printf("\nOther programs took %.0f %% of the machine in the median turn and %.0f %% in the worst.\n", quantile(others, 0.5), quantile(others, 1))
}

// ratio is the CPU time of r relative to that of base; empty if base was not measured.
func (r *row) ratio(base *row) string {
	if len(base.Turns) != len(r.Turns) {
		return ""
	}
	return fmt.Sprintf("%.2f", medianRatio(r.Turns, base.Turns, turn.edge))
}

// constantRow is one address that gets a constant load.
type constantRow struct {
	Name    string
	address string
	request func(n int) []byte
	missing bool
	// beside is a load of the requests of batch that runs at the same time and is not measured; nil for none.
	beside *openLoop
	batch  func(n int) []byte
	Turns  []constantResult
}

// run measures a turn.
func (r *constantRow) run(ctx context.Context, load openLoop, start int) (s constantResult, err error) {
	var other sync.WaitGroup
	var otherErr error
	if r.beside != nil {
		other.Go(func() { _, otherErr = r.beside.run(ctx, r.address, func(n int) []byte { return r.batch(start + n) }) })
	}
	s, err = load.run(ctx, r.address, func(n int) []byte { return r.request(start + n) })
	other.Wait()
	return s, errors.Join(err, otherErr)
}

// measureConstant measures every row once in each round, in turns. start is the number of the first request of each.
func measureConstant(ctx context.Context, load openLoop, rounds, start int, rows []*constantRow) error {
	for round := range rounds {
		fmt.Printf("constant rate of %.0f/s, round %d of %d\n", load.rate, round+1, rounds)
		for n := range rows {
			r := rows[(round+n)%len(rows)]
			if r.missing {
				continue
			}
			s, err := r.run(ctx, load, start)
			if err != nil {
				return fmt.Errorf("constant rate, %s: %w", r.Name, err)
			}
			r.Turns = append(r.Turns, s)
			fmt.Printf("  %s: p50 %.2f ms, p99 %.2f ms\n", r.Name, milliseconds(s.P50), milliseconds(s.P99))
		}
	}
	return nil
}

func p50(s constantResult) float64 { return milliseconds(s.P50) }
func p99(s constantResult) float64 { return milliseconds(s.P99) }

// printConstant prints the rows and compares them with the first.
func printConstant(rate float64, rows []*constantRow) {
	fmt.Printf("\n| %.0f requests/s, ms from when each was due | p50 | p99 | p99.9 | sent late, p99 | added, p50 | added, p99 |\n"+
		"| --- | --- | --- | --- | --- | --- | --- |\n", rate)
	for n, r := range rows {
		if r.missing {
			continue
		}
		fmt.Printf("| %s | %.2f | %.2f | %.2f | %.2f |", r.Name, medianOf(r.Turns, p50), medianOf(r.Turns, p99),
			medianOf(r.Turns, func(s constantResult) float64 { return milliseconds(s.P999) }),
			medianOf(r.Turns, func(s constantResult) float64 { return milliseconds(s.LateP99) }))
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
	return quantile(values, 0.5)
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
