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
	span                      time.Duration
	out                       string
	rows                      *regexp.Regexp
	standIn, profile          bool
}

func parseEdgeFlags(name string, args []string) (f edgeFlags, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.IntVar(&f.rounds, "rounds", 5, "how often each row has its turn")
	flags.DurationVar(&f.span, "time", 4*time.Second, "how long a turn lasts, whole seconds")
	flags.IntVar(&f.keys, "keys", 20_000, "how many API keys make requests")
	flags.IntVar(&f.connections, "connections", 64, "how many connections make requests")
	flags.StringVar(&f.out, "out", "loadtest/out", "directory for the figures as JSON, and the log")
	rows := flags.String("rows", "", "measure only the rows of which group and name match this regular expression")
	if name == "edge" {
		flags.BoolVar(&f.profile, "profile", false, "write a CPU profile of the gateway for each kind of its turns to out")
		flags.BoolVar(&f.standIn, "stand-in", false, "let a bare fasthttp server answer in core's place, which proxies saturate sooner")
	}
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	if f.rows, err = regexp.Compile(*rows); err != nil {
		return f, fmt.Errorf("rows: %w", err)
	}
	if f.rounds < 1 || f.span < time.Second || f.span%time.Second != 0 || f.keys < 100 || f.connections < 1 {
		return f, errors.New("rounds and connections must be at least 1, keys at least 100, time whole seconds")
	}
	return f, nil
}

// edge measures what the gateway's checks cost beside proxies without any, and beside other ways to refuse.
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
	load, err := newClosedLoop(b.dir, f.connections, f.span)
	if err != nil {
		return err
	}
	fmt.Printf("%s\nlooking every key up once\n", load)
	if err := load.warm(ctx, t.gateway.address, b.keys.good); err != nil {
		return err
	}
	t.keepOnly(f.rows)
	if f.profile {
		b.profiles = f.out
	}
	if err := b.takeTurns(ctx, load, t.rows, f.rounds); err != nil {
		return err
	}
	alone, err := b.decidedWithoutRedis(ctx)
	if err != nil {
		return err
	}
	if alone > 0 {
		fmt.Printf("%.0f decisions of the gateway were made without Redis, which was slow or silent\n", alone)
	}
	t.print()
	if len(t.gateway.Turns) == 0 {
		return nil // without its rate there is no half of it
	}
	rate := t.gateway.over(func(t turn) float64 { return t.Rate }) / 2
	constant, err := b.constantLoad(ctx, f, rate, t)
	if err != nil {
		return err
	}
	printConstant(rate, constant)
	return t.write(f.out, constant)
}

// fewFailures is the share of answers other than 2xx that a row of good keys may have.
const fewFailures = 0.001

// edgeTable starts the peers and lists the rows.
func (b *bench) edgeTable(ctx context.Context, keys int) (*edgeTable, error) {
	nginx, err := b.startNginx(ctx)
	if err != nil {
		return nil, err
	}
	haproxy, err := b.startHaproxy(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := b.startFixed(ctx)
	if err != nil {
		return nil, err
	}
	if err := pin(ctx, b.cores.proxy, b.gatewayPID); err != nil {
		return nil, err
	}
	through := func(name string, list *keyList, least, most float64) *row {
		return &row{
			Name: name, address: b.gatewayAddress, keys: list, proxy: []int{b.gatewayPID}, redis: true, least: least, most: most,
		}
	}
	beside := func(name string, p peer, address string, list *keyList, least, most float64) *row {
		return &row{Name: name, Missing: p.missing, address: address, keys: list, proxy: p.pids, least: least, most: most}
	}
	t := &edgeTable{
		nginx:   beside("nginx, no checks", nginx, nginx.bare, b.keys.good, 0, fewFailures),
		gateway: through(fmt.Sprintf("gateway, %d keys", keys), b.keys.good, 0, fewFailures),
		fixed:   beside("fasthttp, a fixed reply", bare, bare.limited, b.keys.spent, 1, 1),
	}
	t.add("pass-through", t.nginx, beside("haproxy, no checks", haproxy, haproxy.bare, b.keys.good, 0, fewFailures), t.gateway)
	t.add("refused", t.fixed,
		beside("nginx, limit_req", nginx, nginx.limited, b.keys.spent, 0.5, 1),
		beside("haproxy, stick-table", haproxy, haproxy.limited, b.keys.spent, 0.5, 1),
		through("gateway", b.keys.spent, 0.5, 1))
	t.add("unknown keys", through("gateway", b.keys.unknown, 1, 1))
	t.add("mixed", through("gateway, 5 % spent, 5 % unknown", b.keys.mixed, 0.05, 0.15))
	return t, nil
}

// constantLoad measures the time of answers at a constant rate, of core alone and through the proxies before it.
func (b *bench) constantLoad(ctx context.Context, f edgeFlags, rate float64, t *edgeTable) ([]*constantRow, error) {
	var identity []string
	for _, header := range b.identity() {
		identity = append(identity, header[0]+": "+header[1])
	}
	direct := getRequest(identity...)
	withKey := func(n int) []byte { return b.keys.good.request(n) }
	rows := []*constantRow{
		{Name: b.upstreamName + ", directly", address: b.upstream, request: func(int) []byte { return direct }},
		{Name: t.nginx.Name, address: t.nginx.address, request: withKey, missing: t.nginx.Missing != ""},
		{Name: t.gateway.Name, address: t.gateway.address, request: withKey},
	}
	load := openLoop{connections: f.connections, rate: rate, span: f.span}
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
