package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// crowdRow is one kind of crowd.
type crowdRow struct {
	Name string
	// Missing says why it could not be had.
	Missing string `json:",omitempty"`

	summon func(ctx context.Context) (*gang, error)
	Turns  []crowdTurn
}

// crowdTurn is what one turn came to. CPU times are shares of one CPU.
type crowdTurn struct {
	Quiet, Beside steady
	// Ratio is that of the 99th percentiles.
	Ratio float64
	// Gateway, Crowd and Others are CPU time: of the gateway, of the crowd's own process, of whatever is no part of this; of the
	// last the more, alone or beside.
	Gateway, Crowd, Others float64
	// MiB is the gateway's resident set at its largest, after MiBBefore, Goroutines and Conns what it had at the end.
	MiBBefore, MiB, Goroutines, Conns float64
	Outcome                           string
}

// faceInPeace takes a turn, and again while others take too much of the machine.
func (b *bench) faceInPeace(ctx context.Context, load openLoop, r *crowdRow) error {
	for try := 1; ; try++ {
		if err := b.face(ctx, load, r); err != nil {
			return err
		}
		last := len(r.Turns) - 1
		if r.Turns[last].Others <= unrest || try == patience {
			return nil
		}
		r.Turns = r.Turns[:last]
	}
}

// face measures honest requests alone, and then beside a crowd.
func (b *bench) face(ctx context.Context, load openLoop, r *crowdRow) (err error) {
	var t crowdTurn
	alone, err := b.newMeter()
	if err != nil {
		return err
	}
	if t.Quiet, err = load.run(ctx, b.gatewayAddress, b.honestRequest); err != nil {
		return fmt.Errorf("honest requests alone: %w", err)
	}
	if err := alone.read(&t); err != nil {
		return err
	}
	others := t.Others
	before, err := b.openConns(ctx)
	if err != nil {
		return err
	}
	memory := memory{pid: b.gatewayPID}
	if memory.before, err = resident(b.gatewayPID); err != nil {
		return err
	}
	g, err := r.summon(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.process.Stop(endSignal, 5*time.Second)) }()
	m, err := b.newMeter(g.process.PID())
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { memory.watch(watching) })
	t.Beside, err = load.run(ctx, b.gatewayAddress, b.honestRequest)
	stop()
	watcher.Wait()
	if err != nil {
		return fmt.Errorf("honest requests beside the crowd: %w", err)
	}
	t.MiBBefore, t.MiB = float64(memory.before)/(1<<20), float64(memory.most)/(1<<20)
	if err := m.read(&t); err != nil {
		return err
	}
	t.Others = max(t.Others, others)
	if t.Conns, err = b.openConns(ctx); err != nil {
		return err
	}
	if t.Goroutines, err = readCounter(ctx, b.metricsURL, "go_goroutines "); err != nil {
		return err
	}
	if t.Outcome, err = g.disperse(ctx); err != nil {
		return err
	}
	t.Ratio = float64(t.Beside.P99) / float64(max(t.Quiet.P99, restlessness))
	r.Turns = append(r.Turns, t)
	fmt.Printf("  %s: p99 %.1f ms alone, %.1f ms beside; %s; %.0f %% of the machine went to others\n",
		r.Name, p99(t.Quiet), p99(t.Beside), t.Outcome, 100*t.Others)
	return b.awaitQuiet(ctx, before)
}

// honestRequest is the n-th of honest clients: three in four ask for tokens, the fourth for a page of intents.
func (b *bench) honestRequest(n int) []byte {
	if n%4 != 0 {
		return b.keys.good.request(n)
	}
	return []byte("GET /v2/transfers?limit=10 HTTP/1.1\r\nHost: loadtest\r\nX-Api-Key: " + b.keys.good.keys[n%len(b.keys.good.keys)] + "\r\n\r\n")
}

func (b *bench) openConns(ctx context.Context) (float64, error) {
	return readCounter(ctx, b.metricsURL, "intents_gateway_connections_open ")
}

// awaitQuiet waits until the gateway has no more connections open than it had.
func (b *bench) awaitQuiet(ctx context.Context, had float64) error {
	for deadline := time.Now().Add(30 * time.Second); ctx.Err() == nil; pause(50 * time.Millisecond) {
		open, err := b.openConns(ctx)
		if err != nil || open <= had {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%.0f connections of a crowd that has left are still open", open-had)
		}
	}
	return ctx.Err()
}

// meter measures where the machine's time goes.
type meter struct {
	charged   map[string][]int
	before    map[string]time.Duration
	all, busy time.Duration
	began     time.Time
}

// newMeter begins to measure; a crowd is one process.
func (b *bench) newMeter(crowd ...int) (m *meter, err error) {
	// Not the whole family of this process: once /proc has been asked about the threads of a crowd, its end takes the kernel
	// many seconds of locks, held by whom all others go before.
	ours := append([]int{os.Getpid()}, crowd...)
	for _, process := range b.env.Processes {
		ours = append(ours, family(process.PID)...)
	}
	m = &meter{began: time.Now(), charged: map[string][]int{"gateway": {b.gatewayPID}, "crowd": crowd, "ours": ours}}
	if m.before, err = cpuTimes(m.charged); err != nil {
		return nil, err
	}
	m.all, m.busy, err = machineTime()
	return m, err
}

func (m *meter) read(t *crowdTurn) error {
	after, err := cpuTimes(m.charged)
	if err != nil {
		return err
	}
	all, busy, err := machineTime()
	if err != nil {
		return err
	}
	took := time.Since(m.began).Seconds()
	share := func(name string) float64 { return (after[name] - m.before[name]).Seconds() / took }
	t.Gateway, t.Crowd = share("gateway"), share("crowd")
	ours := after["ours"] - m.before["ours"]
	t.Others = max(0, (busy-m.busy-ours).Seconds()/(all-m.all).Seconds())
	return nil
}
