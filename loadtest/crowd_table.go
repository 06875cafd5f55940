package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// tellCrowds prints and writes the figures. It fails where a crowd made honest requests wait too long.
func tellCrowds(f crowdFlags, rows []*crowdRow) error {
	fmt.Printf("\n| %.0f honest requests/s, ms from when each was due | p50 alone | p50 beside | p99 alone | p99 beside | ratio | lowest to highest | "+
		"gateway CPU %% | crowd CPU %% | gateway MiB before | beside | goroutines |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", f.rate)
	var err error
	var others []float64
	for _, r := range rows {
		if r.Missing != "" {
			fmt.Printf("| %s | %s | | | | | | | | | | |\n", r.Name, r.Missing)
		}
		if len(r.Turns) == 0 {
			continue
		}
		ratios := r.all(func(t crowdTurn) float64 { return t.Ratio })
		ratio := median(ratios)
		fmt.Printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f to %.2f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", r.Name,
			r.over(func(t crowdTurn) float64 { return p50(t.Quiet) }), r.over(func(t crowdTurn) float64 { return p50(t.Beside) }),
			r.over(func(t crowdTurn) float64 { return p99(t.Quiet) }), r.over(func(t crowdTurn) float64 { return p99(t.Beside) }),
			ratio, slices.Min(ratios), slices.Max(ratios),
			r.over(func(t crowdTurn) float64 { return 100 * t.Gateway }), r.over(func(t crowdTurn) float64 { return 100 * t.Crowd }),
			r.over(func(t crowdTurn) float64 { return t.MiBBefore }), r.over(func(t crowdTurn) float64 { return t.MiB }), r.over(func(t crowdTurn) float64 { return t.Goroutines }))
		others = append(others, r.all(func(t crowdTurn) float64 { return 100 * t.Others })...)
		if ratio > allowedRatio {
			err = errors.Join(err, fmt.Errorf("%s: honest requests take %.2f times as long, allowed are %d", r.Name, ratio, allowedRatio))
		}
	}
	fmt.Println("\n| crowd | what became of it in the last turn |\n| --- | --- |")
	for _, r := range rows {
		if len(r.Turns) > 0 {
			fmt.Printf("| %s | %s |\n", r.Name, r.Turns[len(r.Turns)-1].Outcome)
		}
	}
	if len(others) > 0 {
		fmt.Printf("\nOther programs took %.0f %% of the machine in the median turn and %.0f %% in the worst.\n", median(others), slices.Max(others))
	}
	return errors.Join(err, writeCrowds(f.out, rows))
}

func writeCrowds(dir string, rows []*crowdRow) error {
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "crowd.json"), append(text, '\n'), 0o644)
}

func (r *crowdRow) all(figure func(crowdTurn) float64) []float64 {
	values := make([]float64, len(r.Turns))
	for n, t := range r.Turns {
		values[n] = figure(t)
	}
	return values
}

// over is the median of a figure over the turns.
func (r *crowdRow) over(figure func(crowdTurn) float64) float64 { return median(r.all(figure)) }
