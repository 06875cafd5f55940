package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"intents.internal/deploy/stack"
)

// row is one row of a table: an address, the keys of its load, and the processes whose CPU time is measured.
type row struct {
	Group string
	Name  string
	// Missing says why the row was not measured.
	Missing string `json:",omitempty"`

	address string
	keys    *keyList
	proxy   []int
	balance []int // the load balancer in front of the proxy, if any
	redis   bool
	// minRefused and maxRefused bound the share of responses other than 2xx, outside of which the measurement is invalid.
	minRefused, maxRefused float64

	Turns []turn
}

// turn is the result of one turn of a row. Times are in milliseconds, CPU times in microseconds per request.
type turn struct {
	Rate    float64
	P50     float64
	P99     float64
	Refused float64 // share of the responses
	Proxy   float64 // CPU of the proxy under test
	Redis   float64
	Balance float64 `json:",omitempty"`
	Core    float64 // CPU of core
	Others  float64 // share of the machine's CPU time that other programs used
}

// checks is the CPU time of the proxy and Redis per request.
func (t turn) checks() float64 { return t.Proxy + t.Redis }

// measure measures one turn of r.
func (b *bench) measure(ctx context.Context, load *closedLoop, r *row) error {
	processes := map[string][]int{"proxy": r.proxy, "balance": r.balance, "core": b.upstreamPIDs}
	if r.redis {
		processes["redis"] = []int{b.env.PID(stack.Redis)}
	}
	processes["ours"] = processTree(os.Getpid())
	allBefore, busyBefore, err := machineCPUTime()
	if err != nil {
		return err
	}
	before, err := cpuTimes(processes)
	if err != nil {
		return err
	}
	profiled := b.profile(ctx, r, load.duration)
	l, err := load.run(ctx, r.address, r.keys)
	if err := errors.Join(err, <-profiled); err != nil {
		return fmt.Errorf("%s, %s: %w", r.Group, r.Name, err)
	}
	after, err := cpuTimes(processes)
	if err != nil {
		return err
	}
	all, busy, err := machineCPUTime()
	if err != nil {
		return err
	}
	each := func(name string) float64 {
		return float64((after[name] - before[name]).Microseconds()) / float64(l.requests)
	}
	t := turn{
		Rate: float64(l.requests) / l.took.Seconds(), P50: milliseconds(l.p50), P99: milliseconds(l.p99),
		Refused: float64(l.refused) / float64(l.requests),
		Proxy:   each("proxy"), Redis: each("redis"), Balance: each("balance"), Core: each("core"),
	}
	ours := after["ours"] - before["ours"] + l.generate
	t.Others = max(0, (busy-busyBefore-ours).Seconds()/(all-allBefore).Seconds())
	r.Turns = append(r.Turns, t)
	fmt.Printf("  %s, %s: %.0f/s, %.1f µs a request; other programs used %.0f %% of the machine\n",
		r.Group, r.Name, t.Rate, t.checks(), 100*t.Others)
	if t.Proxy <= 0 {
		return fmt.Errorf("%s, %s: its process used no CPU time: it has ended, or another process serves the address", r.Group, r.Name)
	}
	if t.Refused < r.minRefused || t.Refused > r.maxRefused {
		return fmt.Errorf("%s, %s: %.2f %% of the responses were not 2xx; it should be %.1f to %.1f %%",
			r.Group, r.Name, 100*t.Refused, 100*r.minRefused, 100*r.maxRefused)
	}
	return ctx.Err()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func cpuTimes(processes map[string][]int) (map[string]time.Duration, error) {
	times := make(map[string]time.Duration, len(processes))
	for name, pids := range processes {
		var err error
		if times[name], err = cpuTime(pids); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// runRounds measures all rows in rounds. Each round starts with another row, so that the order differs.
func (b *bench) runRounds(ctx context.Context, load *closedLoop, rows []*row, rounds int) error {
	for round := range rounds {
		fmt.Printf("round %d of %d\n", round+1, rounds)
		for n := range rows {
			r := rows[(round+n)%len(rows)]
			if r.Missing != "" {
				continue
			}
			if err := b.measure(ctx, load, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// medianOf returns the median of a figure over the turns.
func (r *row) medianOf(figure func(turn) float64) float64 {
	values := make([]float64, len(r.Turns))
	for n, t := range r.Turns {
		values[n] = figure(t)
	}
	return median(values)
}

// ratio returns the median, over the rounds, of r's CPU time relative to base's in the same round; 0 without base.
func (r *row) ratio(base *row) float64 {
	if len(base.Turns) != len(r.Turns) {
		return 0
	}
	values := make([]float64, len(r.Turns))
	for n, t := range r.Turns {
		values[n] = t.checks() / base.Turns[n].checks()
	}
	return median(values)
}
