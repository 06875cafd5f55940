package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"time"
)

// edgeFlags are the settings of edge and replicas.
type edgeFlags struct {
	rounds, keys, connections int
	duration                  time.Duration
	out                       string
	rows                      *regexp.Regexp
	standIn, profile          bool
}

func parseEdgeFlags(name string, args []string) (f edgeFlags, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.IntVar(&f.rounds, "rounds", 5, "how often each row is measured")
	flags.DurationVar(&f.duration, "time", 4*time.Second, "how long a turn lasts, whole seconds")
	flags.IntVar(&f.keys, "keys", 20_000, "number of API keys of the requests")
	flags.IntVar(&f.connections, "connections", 64, "number of connections")
	flags.StringVar(&f.out, "out", "loadtest/out", "directory of the results as JSON, and of the log")
	rows := flags.String("rows", "", "measure only the rows whose group and name match this regular expression")
	if name == "edge" {
		flags.BoolVar(&f.profile, "profile", false, "write a CPU profile of the gateway for each group of rows to out")
		flags.BoolVar(&f.standIn, "stand-in", false, "replace core by a bare fasthttp server, which is faster")
	}
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
	f, err := parseEdgeFlags("edge", args)
	if err != nil {
		return err
	}
	b, err := openBench(ctx, f.out, "edge", 1, f.keys, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if f.standIn {
		if err := b.useStandIn(ctx); err != nil {
			return err
		}
	}
	t, err := b.edgeTable(ctx, f.keys)
	if err != nil {
		return err
	}
	load, err := newClosedLoop(b.dir, "tokens", tokensRequest, f.connections, f.duration)
	if err != nil {
		return err
	}
	fmt.Printf("%s\nlooking every key up once\n", load)
	if err := load.warm(ctx, t.gateway.address, b.keys.good); err != nil {
		return err
	}
	t.filter(f.rows)
	if f.profile {
		b.profiles = f.out
	}
	if err := b.runRounds(ctx, load, t.rows, f.rounds); err != nil {
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
	rate := t.gateway.medianOf(func(t turn) float64 { return t.Rate }) / 2
	constant, err := b.constantLoad(ctx, f, rate, t)
	if err != nil {
		return err
	}
	printConstant(rate, constant)
	return t.write(f.out, constant)
}

// maxFailureShare is the allowed share of responses other than 2xx to good keys.
const maxFailureShare = 0.001

// edgeTable starts the peers and returns the rows.
func (b *bench) edgeTable(ctx context.Context, keys int) (*edgeTable, error) {
	nginx, err := b.startNginx(ctx)
	if err != nil {
		return nil, err
	}
	haproxy, err := b.startHaproxy(ctx)
	if err != nil {
		return nil, err
	}
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
	gatewayRow := func(name string, list *keyList, minRefused, maxRefused float64) *row {
		return &row{
			Name: name, address: b.gatewayAddress, keys: list, proxy: []int{b.gatewayPID}, redis: true, minRefused: minRefused, maxRefused: maxRefused,
		}
	}
	peerRow := func(name string, p peer, address string, list *keyList, minRefused, maxRefused float64) *row {
		return &row{Name: name, Missing: p.missing, address: address, keys: list, proxy: p.pids, minRefused: minRefused, maxRefused: maxRefused}
	}
	t := &edgeTable{
		nginx:   peerRow("nginx, no checks", nginx, nginx.bare, b.keys.good, 0, maxFailureShare),
		gateway: gatewayRow(fmt.Sprintf("gateway, %d keys", keys), b.keys.good, 0, maxFailureShare),
		fixed:   peerRow("fasthttp, a fixed reply", fixed, fixed.limited, b.keys.limited, 1, 1),
	}
	bareRow := peerRow("bare gateway: key, limit, forward", bare, bare.bare, b.keys.good, 0, maxFailureShare)
	bareRefused := peerRow("bare gateway: key, limit", bare, bare.limited, b.keys.limited, 0.5, 1)
	bareRow.redis, bareRefused.redis = true, true
	t.add("pass-through", t.nginx, peerRow("haproxy, no checks", haproxy, haproxy.bare, b.keys.good, 0, maxFailureShare), bareRow, t.gateway)
	t.add("refused", t.fixed,
		peerRow("nginx, limit_req", nginx, nginx.limited, b.keys.limited, 0.5, 1),
		peerRow("haproxy, stick-table", haproxy, haproxy.limited, b.keys.limited, 0.5, 1),
		bareRefused,
		gatewayRow("gateway", b.keys.limited, 0.5, 1))
	t.add("unknown keys", gatewayRow("gateway", b.keys.unknown, 1, 1))
	t.add("mixed", gatewayRow("gateway, 5 % spent, 5 % unknown", b.keys.mixed, 0.05, 0.15))
	return t, nil
}

// constantLoad measures response times at a constant rate, of core directly and through the proxies.
func (b *bench) constantLoad(ctx context.Context, f edgeFlags, rate float64, t *edgeTable) ([]*constantRow, error) {
	direct := getRequest(b.identityLines()...)
	withKey := func(n int) []byte { return b.keys.good.request(tokensRequest, n) }
	rows := []*constantRow{
		{Name: b.upstreamName + ", directly", address: b.upstream, request: func(int) []byte { return direct }},
		{Name: t.nginx.Name, address: t.nginx.address, request: withKey, missing: t.nginx.Missing != ""},
		{Name: t.gateway.Name, address: t.gateway.address, request: withKey},
	}
	load := openLoop{connections: f.connections, rate: rate, duration: f.duration}
	for round := range f.rounds {
		fmt.Printf("constant rate of %.0f/s, round %d of %d\n", rate, round+1, f.rounds)
		for n := range rows {
			r := rows[(round+n)%len(rows)]
			if r.missing {
				continue
			}
			start := rand.IntN(len(b.keys.good.keys))
			s, err := load.run(ctx, r.address, func(n int) []byte { return r.request(start + n) })
			if err != nil {
				return nil, fmt.Errorf("constant rate, %s: %w", r.Name, err)
			}
			r.Turns = append(r.Turns, s)
			fmt.Printf("  %s: p50 %.2f ms, p99 %.2f ms\n", r.Name, milliseconds(s.P50), milliseconds(s.P99))
		}
	}
	return rows, nil
}
