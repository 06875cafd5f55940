package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// maxFailureShare is the allowed share of responses other than 2xx to good keys.
const maxFailureShare = 0.001

// row is one row of a table: a load on one server, and the processes whose CPU time is measured. Rows of a group do the same job.
type row struct {
	Group, Name string
	// Missing says why the row was not measured.
	Missing string `json:",omitempty"`

	run       func(context.Context) (closedResult, error)
	processes func() map[string][]int
	// intents is how many a request records, 0 for one: figures are per intent then.
	intents int
	// minRefused and maxRefused bound the share of responses other than 2xx, outside of which the measurement is invalid.
	minRefused, maxRefused float64

	// base is the row that this one is compared with in figure, which is named unit. The scenario whole uses them.
	base   *row
	figure func(turn) float64
	unit   string

	Turns []turn
}

// turn is the result of one turn of a row. Times are in milliseconds, CPU times in microseconds per request by process.
type turn struct {
	Rate, P50, P99 float64 // of intents where a request records several, which P50 and P99 are of
	Refused        float64 // share of the responses
	CPU            map[string]float64
	Others         float64 // share of the machine's CPU time that other programs used
}

func (t turn) rate() float64 { return t.Rate }

// edge is the CPU time of the proxy between the client and core, and of Redis.
func (t turn) edge() float64 { return t.CPU["gateway"] + t.CPU["redis"] }

// measure measures one turn.
func (r *row) measure(ctx context.Context) error {
	processes := r.processes()
	allBefore, busyBefore, err := machineCPUTime()
	if err != nil {
		return err
	}
	ownBefore, err := cpuTime(processTree(os.Getpid()))
	if err != nil {
		return err
	}
	before, err := cpuTimes(processes)
	if err != nil {
		return err
	}
	l, err := r.run(ctx)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", r.Group, r.Name, err)
	}
	after, err := cpuTimes(r.processes())
	if err != nil {
		return err
	}
	own, err := cpuTime(processTree(os.Getpid()))
	if err != nil {
		return err
	}
	all, busy, err := machineCPUTime()
	if err != nil {
		return err
	}
	done := float64(l.requests * max(r.intents, 1))
	t := turn{
		Rate: done / l.took.Seconds(), P50: milliseconds(l.p50), P99: milliseconds(l.p99),
		Refused: float64(l.refused) / float64(l.requests), CPU: map[string]float64{},
	}
	for name := range after {
		t.CPU[name] = float64((after[name] - before[name]).Microseconds()) / done
	}
	t.Others = max(0, (busy-busyBefore-own+ownBefore-l.generate).Seconds()/(all-allBefore).Seconds())
	r.Turns = append(r.Turns, t)
	fmt.Printf("  %s, %s: %.0f/s; other programs used %.0f %% of the machine\n", r.Group, r.Name, t.Rate, 100*t.Others)
	if cpu, measured := t.CPU["gateway"]; measured && cpu <= 0 {
		return fmt.Errorf("%s, %s: its process used no CPU time: it has ended, or another process serves the address", r.Group, r.Name)
	}
	if t.Refused < r.minRefused || t.Refused > r.maxRefused {
		return fmt.Errorf("%s, %s: %.2f %% of the responses were not 2xx; it should be %.1f to %.1f %%",
			r.Group, r.Name, 100*t.Refused, 100*r.minRefused, 100*r.maxRefused)
	}
	return ctx.Err()
}

// measureRounds measures all rows in rounds. Each round starts with another row, so that the order differs.
func measureRounds(ctx context.Context, rows []*row, rounds int) error {
	for round := range rounds {
		fmt.Printf("round %d of %d\n", round+1, rounds)
		for n := range rows {
			r := rows[(round+n)%len(rows)]
			if r.Missing != "" {
				continue
			}
			if err := r.measure(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
