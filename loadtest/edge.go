package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/help"
)

// edgeFlags are the settings of edge.
type edgeFlags struct {
	rounds, keys, connections int
	duration                  time.Duration
	out                       string
	rows                      *regexp.Regexp
	standIn, profile          bool
}

func parseEdgeFlags(args []string) (f edgeFlags, err error) {
	flags := help.FlagSet("edge", args)
	flags.IntVar(&f.rounds, "rounds", 5, "how often each row is measured")
	flags.DurationVar(&f.duration, "time", 4*time.Second, "how long a turn lasts, whole seconds")
	flags.IntVar(&f.keys, "keys", 20_000, "number of API keys of the requests")
	flags.IntVar(&f.connections, "connections", 64, "number of connections")
	flags.StringVar(&f.out, "out", "loadtest/out", "directory of the results as JSON, and of the log")
	rows := flags.String("rows", "", "measure only the rows whose group and name match this regular expression")
	flags.BoolVar(&f.profile, "profile", false, "write a CPU profile of the gateway for each group of rows to out")
	flags.BoolVar(&f.standIn, "stand-in", false, "replace core by a bare fasthttp server, which is faster")
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	if f.rows, err = regexp.Compile(*rows); err != nil {
		return f, fmt.Errorf("rows: %w", err)
	}
	if f.rounds < 1 || f.duration < time.Second || f.duration%time.Second != 0 || f.keys < 100 || f.connections < 1 {
		return f, errors.New("rounds and connections must be at least 1, keys at least 100, time whole seconds")
	}
	return f, nil
}

// edge measures the cost of the gateway's checks, compared with proxies without checks and with other rate limiters.
func edge(ctx context.Context, args []string) (err error) {
	f, err := parseEdgeFlags(args)
	if err != nil {
		return err
	}
	b, err := openBench(ctx, f.out, f.keys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if f.standIn {
		if err := b.useStandIn(ctx); err != nil {
			return err
		}
	}
	load, err := newClosedLoop(b.dir, "tokens", tokensRequest, f.connections, f.duration)
	if err != nil {
		return err
	}
	nginx, err := b.startNginx(ctx)
	if err != nil {
		return err
	}
	t, err := b.edgeTable(ctx, f, load, nginx)
	if err != nil {
		return err
	}
	fmt.Printf("%s\nlooking every key up once\n", load)
	if err := load.warm(ctx, b.gatewayAddress, b.keys.good); err != nil {
		return err
	}
	t.rows = filterRows(t.rows, f.rows)
	if err := measureRounds(ctx, t.rows, f.rounds); err != nil {
		return err
	}
	fallbacks, err := b.fallbackDecisions(ctx)
	if err != nil {
		return err
	}
	if fallbacks > 0 {
		fmt.Printf("%.0f decisions of the gateway were made without Redis, which did not answer in time\n", fallbacks)
	}
	t.print()
	if len(t.gateway.Turns) == 0 {
		return nil // the constant rate below is half of the gateway's
	}
	rate := medianOf(t.gateway.Turns, turn.rate) / 2
	constant, err := b.constantLoad(ctx, f, rate, nginx)
	if err != nil {
		return err
	}
	printConstant(rate, constant)
	return writeOutput(f.out, "edge", map[string]any{"closedLoop": t.rows, "constantRate": constant})
}

// edgeTable starts the other peers and returns the rows.
func (b *bench) edgeTable(ctx context.Context, f edgeFlags, load *closedLoop, nginx peer) (*edgeTable, error) {
	fixed, err := b.startFixed(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := b.startBare(ctx)
	if err != nil {
		return nil, err
	}
	if err := pin(ctx, b.cpus.proxy, b.gatewayPID); err != nil {
		return nil, err
	}
	gateway := peer{bare: b.gatewayAddress, limited: b.gatewayAddress, pids: []int{b.gatewayPID}}
	newRow := func(group, name string, p peer, address string, keys *keyList, minRefused, maxRefused float64) *row {
		r := &row{
			Group: group, Name: name, Missing: p.missing, minRefused: minRefused, maxRefused: maxRefused,
			processes: func() map[string][]int {
				return map[string][]int{"gateway": p.pids, "redis": {b.env.PID(stack.Redis)}, "core": b.upstreamPIDs}
			},
			run: func(ctx context.Context) (closedResult, error) { return load.run(ctx, address, keys) },
		}
		if f.profile && address == b.gatewayAddress {
			r.run = profiled(r.run, b.metricsURL, profilePath(f.out, "edge", group), f.duration)
		}
		return r
	}
	passed := func(name string, p peer) *row {
		return newRow("pass-through", name, p, p.bare, b.keys.good, 0, maxFailureShare)
	}
	refused := func(name string, p peer, least float64) *row {
		return newRow("refused", name, p, p.limited, b.keys.limited, least, 1)
	}
	t := &edgeTable{
		nginx: passed("nginx, no checks", nginx), gateway: passed(fmt.Sprintf("gateway, %d keys", f.keys), gateway),
		fixed: refused("fasthttp, a fixed reply", fixed, 1),
	}
	t.rows = []*row{
		t.nginx, passed("bare gateway: key, limit, forward", bare), t.gateway,
		t.fixed, refused("nginx, limit_req", nginx, 0.5), refused("bare gateway: key, limit", bare, 0.5), refused("gateway", gateway, 0.5),
		newRow("unknown keys", "gateway", gateway, gateway.bare, b.keys.unknown, 1, 1),
	}
	return t, nil
}

// constantLoad measures response times at a constant rate, of core directly and through the proxies.
func (b *bench) constantLoad(ctx context.Context, f edgeFlags, rate float64, nginx peer) ([]*constantRow, error) {
	direct := getRequest(b.identityLines()...)
	withKey := func(n int) []byte { return b.keys.good.request(tokensRequest, n) }
	rows := []*constantRow{
		{Name: b.upstreamName + ", directly", address: b.upstream, request: func(int) []byte { return direct }},
		{Name: "nginx", address: nginx.bare, request: withKey, missing: nginx.missing != ""},
		{Name: "gateway", address: b.gatewayAddress, request: withKey},
	}
	start := rand.IntN(len(b.keys.good.keys))
	return rows, measureConstant(ctx, openLoop{connections: f.connections, rate: rate, duration: f.duration}, f.rounds, start, rows)
}
