package main

import (
	"context"
	"errors"
	"fmt"
	"text/template"

	"intents.internal/pkg/testkit/embedded"
)

// replicaCounts are the compared numbers of gateways.
var replicaCounts = []int{1, 2, 4}

var balancerConfig = template.Must(template.New("balancer").Parse(`global
  maxconn 8192
defaults
  mode http
  balance leastconn
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
{{range $n, $group := .Groups}}frontend clients{{$n}}
  bind {{$group.Address}}
  default_backend gateways{{$n}}
backend gateways{{$n}}
{{range $m, $gateway := $group.Gateways}}  server gateway{{$m}} {{$gateway}}
{{end}}{{end}}`))

// gatewayGroup is a number of gateways behind one address.
type gatewayGroup struct {
	Address  string
	Gateways []string
	pids     []int
}

// replicas measures several gateways with one Redis behind haproxy.
func replicas(ctx context.Context, args []string) (err error) {
	f, err := parseEdgeFlags("replicas", args)
	if err != nil {
		return err
	}
	haproxy, err := findProgram("haproxy")
	if err != nil {
		return fmt.Errorf("%w; on Debian: apt-get install haproxy", err)
	}
	b, err := openBench(ctx, f.out, "replicas", replicaCounts[len(replicaCounts)-1], f.keys, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	rows, err := b.replicaRows(ctx, haproxy)
	if err != nil {
		return err
	}
	load, err := newClosedLoop(b.dir, "tokens", tokensRequest, f.connections, f.duration)
	if err != nil {
		return err
	}
	fmt.Printf("%s\nlooking every key up once at each gateway\n", load)
	for n := range replicaCounts[len(replicaCounts)-1] {
		address, _ := b.gateway(n + 1)
		if err := load.warm(ctx, address, b.keys.good); err != nil {
			return err
		}
	}
	if err := b.runRounds(ctx, load, rows, f.rounds); err != nil {
		return err
	}
	return reportReplicas(f.out, rows)
}

func (b *bench) replicaRows(ctx context.Context, haproxy string) ([]*row, error) {
	var groups []gatewayGroup
	var addresses []string
	for _, count := range replicaCounts {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		one := gatewayGroup{Address: address}
		for n := range count {
			gateway, pid := b.gateway(n + 1)
			one.Gateways, one.pids = append(one.Gateways, gateway), append(one.pids, pid)
		}
		groups, addresses = append(groups, one), append(addresses, address)
	}
	config, err := b.writeConfig("balancer", balancerConfig, map[string]any{"Groups": groups})
	if err != nil {
		return nil, err
	}
	process, err := b.startPeer(ctx, embedded.Command{Name: "haproxy", Path: haproxy, Args: []string{"-db", "-f", config}}, addresses...)
	if err != nil {
		return nil, err
	}
	rows := make([]*row, len(groups))
	for n, one := range groups {
		rows[n] = &row{
			Group: "replicas", Name: fmt.Sprintf("%d", len(one.pids)), address: one.Address, keys: b.keys.good,
			proxy: one.pids, balance: processTree(process.PID()), redis: true, maxRefused: maxFailureShare,
		}
	}
	return rows, nil
}

func reportReplicas(out string, rows []*row) error {
	fmt.Print("\n| gateways | requests/s | p50 ms | p99 ms | CPU µs a request: gateways | Redis | haproxy | core |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	all := make([]figures, len(rows))
	for n, r := range rows {
		f := r.figures()
		all[n] = f
		fmt.Printf("| %s | %.0f | %.2f | %.2f | %.1f | %.1f | %.1f | %.1f |\n", f.Name, f.Rate, f.P50, f.P99, f.Proxy, f.Redis, f.Balance, f.Core)
	}
	printOthers(rows)
	return writeOutput(out, "replicas", map[string]any{"replicas": all})
}
