package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"intents.internal/deploy/stack"
)

// acceptGzip is the header that most clients send.
const acceptGzip = "Accept-Encoding: gzip"

const postTransfers = "POST /v2/transfers"

const (
	// postBatches is a row of batches of batchSize, with few connections: a core inserts two at once.
	postBatches      = "POST /v2/transfers/batch, for each of its 100 intents"
	batchSize        = 100
	batchConnections = 8
)

func batchRequest() requestTemplate {
	body := `{"transfers":[` + strings.Repeat(newTransferBody()+",", batchSize-1) + newTransferBody() + `]}`
	return requestTemplate(formatRequest("POST /v2/transfers/batch", body, "X-Api-Key: KEY", "Idempotency-Key: "+sequence))
}

func postRequest() requestTemplate {
	return requestTemplate(formatRequest(postTransfers, newTransferBody(), "X-Api-Key: KEY"))
}

// rows returns the requests to each release and to its peers.
func (b *wholeBench) rows(ctx context.Context) ([]*row, error) {
	inserts, err := b.pgbenchRow()
	if err != nil {
		return nil, err
	}
	page := formatRequest("GET /v2/transfers?limit=100", "", "X-Api-Key: KEY")
	proxied, err := b.nginxRow(ctx, page)
	if err != nil {
		return nil, err
	}
	rows := []*row{inserts, proxied}
	for _, s := range b.stacks {
		refusal, err := b.row(s, "over its limit", tokensRequest, s.limited, b.connections)
		if err != nil {
			return nil, err
		}
		refusal.minRefused, refusal.maxRefused = 0.5, 1
		rows = append(rows, refusal)
		for _, request := range []struct {
			name, text  string
			keys        *keyList
			connections int
			base        *row
		}{
			{postTransfers, string(postRequest()), s.good, b.clients, inserts},
			{"a page of 100", page, s.paged, b.connections, proxied},
			{"GET /v2/tokens", formatRequest("GET /v2/tokens", "", "X-Api-Key: KEY", acceptGzip), s.good, b.connections, refusal},
			{"GET /v2/chains", formatRequest("GET /v2/chains", "", "X-Api-Key: KEY", acceptGzip), s.good, b.connections, refusal},
			{"GET /openapi.json", formatRequest("GET /openapi.json", "", acceptGzip), s.good, b.connections, refusal},
		} {
			r, err := b.row(s, request.name, requestTemplate(request.text), request.keys, request.connections)
			if err != nil {
				return nil, err
			}
			r.base, r.figure, r.unit = request.base, turn.edge, "CPU"
			if request.base == inserts {
				r.figure, r.unit = turn.rate, "rate"
			}
			rows = append(rows, r)
			if request.name == postTransfers && s == b.stacks[0] {
				batches, err := b.row(s, postBatches, batchRequest(), s.good, batchConnections)
				if err != nil {
					return nil, err
				}
				batches.intents, batches.base, batches.figure, batches.unit = batchSize, r, turn.rate, "rate"
				rows = append(rows, batches)
			}
		}
		fmt.Println("looking every key up once at", s.name)
		if err := (&closedLoop{template: tokensRequest, connections: b.connections}).warm(ctx, s.address(), s.good); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// row sends the template's requests to the gateway of a stack.
func (b *wholeBench) row(s *wholeStack, name string, template requestTemplate, keys *keyList, connections int) (*row, error) {
	b.loops++
	load, err := newClosedLoop(b.dir, fmt.Sprintf("load-%d", b.loops), template, connections, b.duration)
	r := &row{
		Group: name, Name: s.name, processes: s.processes, maxRefused: maxFailureShare,
		run: func(ctx context.Context) (closedResult, error) { return load.run(ctx, s.address(), keys) },
	}
	if b.profiled && s == b.stacks[0] {
		env := s.stack.Env()
		r.run = profiled(r.run, env.GatewayMetricsURL, profilePath(b.out, "whole-gateway", name), b.duration)
		r.run = profiled(r.run, env.CoreMetricsURL, profilePath(b.out, "whole-core", name), b.duration)
	}
	return r, err
}

func (s *wholeStack) address() string { return strings.TrimPrefix(s.stack.Env().GatewayURL, "http://") }

// processes returns the processes of a stack and their current children.
func (s *wholeStack) processes() map[string][]int {
	env := s.stack.Env()
	return map[string][]int{
		"gateway": {env.PID(stack.GatewayName(1))}, "redis": {env.PID(stack.Redis)},
		"core": {env.PID(stack.CoreName(1))}, "postgres": processTree(s.postgres.PID()),
	}
}

// nginxRow sends the requests of one account to core through nginx, without checks.
func (b *wholeBench) nginxRow(ctx context.Context, page string) (*row, error) {
	s := b.stacks[0]
	b.upstream, b.account = strings.TrimPrefix(s.stack.Env().CoreURL, "http://"), s.paging
	nginx, err := b.startNginx(ctx)
	if err != nil {
		return nil, err
	}
	if nginx.missing != "" {
		return nil, fmt.Errorf("%s; on Debian: apt-get install nginx-light", nginx.missing)
	}
	load, err := newClosedLoop(b.dir, "nginx", requestTemplate(page), b.connections, b.duration)
	return &row{
		Group: "a page of 100", Name: "nginx before core", maxRefused: maxFailureShare,
		processes: func() map[string][]int {
			all := s.processes()
			return map[string][]int{"gateway": nginx.pids, "core": all["core"], "postgres": all["postgres"]}
		},
		run: func(ctx context.Context) (closedResult, error) { return load.run(ctx, nginx.bare, s.paged) },
	}, err
}

// pgbenchServer is the name of pgbench's row.
const pgbenchServer = "pgbench"

// pgbenchRow inserts rows one by one into a table without indexes and constraints.
func (b *wholeBench) pgbenchRow() (*row, error) {
	s := b.stacks[0]
	script := filepath.Join(b.dir, "insert.sql")
	err := os.WriteFile(script, []byte(bareInsert), 0o600)
	return &row{
		Group: "a row in a bare table", Name: pgbenchServer,
		processes: func() map[string][]int { return map[string][]int{"postgres": s.processes()["postgres"]} },
		run: func(ctx context.Context) (closedResult, error) {
			rows, err := pgbenchRows(ctx, b.pgbench, s.postgres.URL, script, b.clients, b.duration)
			return closedResult{requests: rows, took: b.duration}, err
		},
	}, err
}
