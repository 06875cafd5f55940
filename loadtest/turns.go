package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"intents.internal/deploy/stack"
)

// row is one line of a table: a place to load, with what keys, and whose CPU time that costs.
type row struct {
	Group string
	Name  string
	// Missing says why the row was not measured.
	Missing string `json:",omitempty"`

	address string
	keys    *keyList
	proxy   []int
	balance []int // the load balancer before it, if any
	redis   bool
	// least and most bound the share of answers other than 2xx: beyond them the row measures something else than it says.
	least, most float64

	Turns []turn
}

// turn is what one turn of a row came to. Times are in milliseconds, CPU times in microseconds a request.
type turn struct {
	Rate    float64
	P50     float64
	P99     float64
	Refused float64 // share of the answers
	Proxy   float64 // CPU of the proxy under test
	Redis   float64
	Balance float64 `json:",omitempty"`
	Core    float64 // CPU of core
	Others  float64 // share of the machine's time that went to programs that are no part of this
}

// checks is what a decision on a request costs: the proxy's CPU and Redis's.
func (t turn) checks() float64 { return t.Proxy + t.Redis }

// take measures one turn of r.
func (b *bench) take(ctx context.Context, load *closedLoop, r *row) error {
	charged := map[string][]int{"proxy": r.proxy, "balance": r.balance, "core": b.upstreamPIDs}
	if r.redis {
		charged["redis"] = []int{b.env.PID(stack.Redis)}
	}
	charged["ours"] = family(os.Getpid())
	allBefore, busyBefore, err := machineTime()
	if err != nil {
		return err
	}
	before, err := cpuTimes(charged)
	if err != nil {
		return err
	}
	profiled := b.profile(ctx, r, load.span)
	l, err := load.run(ctx, r.address, r.keys)
	if err := errors.Join(err, <-profiled); err != nil {
		return fmt.Errorf("%s, %s: %w", r.Group, r.Name, err)
	}
	after, err := cpuTimes(charged)
	if err != nil {
		return err
	}
	all, busy, err := machineTime()
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
	fmt.Printf("  %s, %s: %.0f/s, %.1f µs a request; %.0f %% of the machine went to others\n",
		r.Group, r.Name, t.Rate, t.checks(), 100*t.Others)
	if t.Proxy <= 0 {
		return fmt.Errorf("%s, %s: its process took no CPU time: it has ended, or is not the one that answers", r.Group, r.Name)
	}
	if t.Refused < r.least || t.Refused > r.most {
		return fmt.Errorf("%s, %s: %.2f %% of the answers were not 2xx; it should be %.1f to %.1f %%",
			r.Group, r.Name, 100*t.Refused, 100*r.least, 100*r.most)
	}
	return ctx.Err()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func cpuTimes(charged map[string][]int) (map[string]time.Duration, error) {
	times := make(map[string]time.Duration, len(charged))
	for name, pids := range charged {
		var err error
		if times[name], err = cpuTime(pids); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// takeTurns measures all rows in rounds, each round beginning with another row, so that no row always follows the same one.
func (b *bench) takeTurns(ctx context.Context, load *closedLoop, rows []*row, rounds int) error {
	for round := range rounds {
		fmt.Printf("round %d of %d\n", round+1, rounds)
		for n := range rows {
			r := rows[(round+n)%len(rows)]
			if r.Missing != "" {
				continue
			}
			if err := b.take(ctx, load, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// over is the median of a figure over the turns.
func (r *row) over(figure func(turn) float64) float64 {
	values := make([]float64, len(r.Turns))
	for n, t := range r.Turns {
		values[n] = figure(t)
	}
	return median(values)
}

// ratio is the median, over the rounds, of r's CPU time to base's in the same round; 0 without base.
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
