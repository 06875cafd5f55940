package main

import (
	"context"
	"errors"
	"fmt"
	"text/template"

	"intents.internal/pkg/embedded"
)

// replicaCounts are the numbers of gateways that are compared.
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
{{range $n, $farm := .Farms}}frontend clients{{$n}}
  bind {{$farm.Address}}
  default_backend gateways{{$n}}
backend gateways{{$n}}
{{range $m, $gateway := $farm.Gateways}}  server gateway{{$m}} {{$gateway}}
{{end}}{{end}}`))

// farm is a number of gateways behind one address.
type farm struct {
	Address  string
	Gateways []string
	pids     []int
}

// replicas measures several gateways on one Redis behind haproxy.
func replicas(ctx context.Context, args []string) (err error) {
	f, err := parseEdgeFlags("replicas", args)
	if err != nil {
		return err
	}
	haproxy, err := findServer("haproxy")
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
	load, err := newClosedLoop(b.dir, f.connections, f.span)
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
	if err := b.takeTurns(ctx, load, rows, f.rounds); err != nil {
		return err
	}
	return reportReplicas(f.out, rows)
}

func (b *bench) replicaRows(ctx context.Context, haproxy string) ([]*row, error) {
	var farms []farm
	var addresses []string
	for _, count := range replicaCounts {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		one := farm{Address: address}
		for n := range count {
			gateway, pid := b.gateway(n + 1)
			one.Gateways, one.pids = append(one.Gateways, gateway), append(one.pids, pid)
		}
		farms, addresses = append(farms, one), append(addresses, address)
	}
	config, err := b.writeConfig("balancer", balancerConfig, map[string]any{"Farms": farms})
	if err != nil {
		return nil, err
	}
	process, err := b.startPeer(ctx, embedded.Command{Name: "haproxy", Path: haproxy, Args: []string{"-db", "-f", config}}, addresses...)
	if err != nil {
		return nil, err
	}
	rows := make([]*row, len(farms))
	for n, one := range farms {
		rows[n] = &row{
			Group: "replicas", Name: fmt.Sprintf("%d", len(one.pids)), address: one.Address, keys: b.keys.good,
			proxy: one.pids, balance: family(process.PID()), redis: true, most: fewFailures,
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
