package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
)

const (
	// pollsPerKey and pollsPerAccount are how many long polls a gateway admits at once.
	pollsPerKey, pollsPerAccount = 2, 8
	// postRounds is how many turns each release has in the comparison of POSTs.
	postRounds = 5
)

// benchAccount is an account with its test keys.
type benchAccount struct{ keys []string }

// makeAccounts inserts accounts with so many test keys each, whose limits nobody reaches.
func makeAccounts(ctx context.Context, env stack.Env, count, keysEach int) (accounts []benchAccount, err error) {
	conn, err := pgx.Connect(ctx, env.DatabaseURL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	accounts = make([]benchAccount, count)
	for n := range accounts {
		owner := uuid.New()
		_, err := conn.Exec(ctx, `INSERT INTO accounts (id, name, email, password_hash, created_at, updated_at) VALUES ($1, 'load', $2, '', now(), now())`,
			owner, fmt.Sprintf("load-%d@example.com", n))
		if err != nil {
			return nil, fmt.Errorf("insert an account: %w", err)
		}
		keys := randomKeys(keysEach)
		if err := copyKeys(ctx, conn, owner, keys); err != nil {
			return nil, err
		}
		accounts[n].keys = reveal(keys)
	}
	if _, err := conn.Exec(ctx, "UPDATE api_keys SET limit_requests = 1000000"); err != nil {
		return nil, fmt.Errorf("raise the limits: %w", err)
	}
	return accounts, nil
}

// createEndpoints creates the accounts' endpoints through the API.
func (b *eventsBench) createEndpoints(ctx context.Context) error {
	fmt.Println("creating endpoints")
	for n, account := range b.accounts[:b.endpoints] {
		body, err := json.Marshal(map[string]string{"url": fmt.Sprintf("%s/%d", b.receiver.url, n)})
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.stack.Env().GatewayURL+"/v2/webhooks", bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("X-Api-Key", account.keys[0])
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusCreated {
			return errors.Join(err, fmt.Errorf("create an endpoint: %s %s", response.Status, text))
		}
	}
	return nil
}

// idlePolls measures the memory of long polls that have nothing to answer.
func (b *eventsBench) idlePolls(ctx context.Context) error {
	if b.polls == 0 {
		return nil
	}
	pids := map[string]int{"gateway": b.stack.Env().PID(stack.GatewayName(1)), "core": b.stack.Env().PID(stack.CoreName(1))}
	var before, after [2]int64
	read := func(into *[2]int64) (err error) {
		for n, name := range []string{"gateway", "core"} {
			if into[n], err = resident(pids[name]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := read(&before); err != nil {
		return err
	}
	fmt.Printf("opening %d long polls\n", b.polls)
	polling, stop := context.WithCancel(ctx)
	defer stop()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.polls}}
	defer client.CloseIdleConnections()
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()
	failed := make(chan error, b.polls)
	slots := make(chan struct{}, 16) // what is connecting at once
	for n := range b.polls {
		account := b.accounts[n/pollsPerAccount]
		r := &feedReader{url: b.stack.Env().GatewayURL, key: account.keys[n%pollsPerAccount/pollsPerKey], client: client}
		slots <- struct{}{}
		running.Go(func() {
			r.run(polling, func() { <-slots })
			if polling.Err() == nil {
				failed <- r.err
			}
		})
	}
	// Long enough that each has been answered once with nothing and asks again.
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(35 * time.Second):
	}
	if err := read(&after); err != nil {
		return err
	}
	stop()
	running.Wait()
	client.CloseIdleConnections()
	select { // the gateway looks for clients that have gone once a second
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(3 * time.Second):
	}
	const mib = 1 << 20
	fmt.Printf("\n| %d idle long polls, MiB | before | with them | more |\n| --- | --- | --- | --- |\n", b.polls)
	for n, name := range []string{"gateway", "core"} {
		fmt.Printf("| %s | %d | %d | %d |\n", name, before[n]/mib, after[n]/mib, (after[n]-before[n])/mib)
	}
	return nil
}

// comparePosts measures the CPU time of a POST in this release and in another one, in turns.
func (f eventsFlags) comparePosts(ctx context.Context) (err error) {
	names := []string{"this release", "the other"}
	var stacks [2]*stack.Stack
	var accounts [2][]benchAccount
	for n, binaries := range []string{"", f.peer} {
		dir, s, failure := startEventsStack(ctx, binaries)
		if dir != "" {
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		}
		if failure != nil {
			return failure
		}
		defer func() { err = errors.Join(err, s.Stop()) }()
		stacks[n] = s
		if accounts[n], err = makeAccounts(ctx, s.Env(), f.endpoints, 1); err != nil {
			return err
		}
	}
	costs := map[string][2][]float64{}
	for round := range postRounds {
		for turn := range stacks {
			n := (round + turn) % len(stacks)
			if err := measurePosts(ctx, stacks[n].Env(), accounts[n], f.duration, func(process string, cost float64) {
				c := costs[process]
				c[n] = append(c[n], cost)
				costs[process] = c
			}); err != nil {
				return err
			}
		}
	}
	fmt.Printf("\n| CPU µs a POST, medians of %d turns | %s | %s | ratio |\n| --- | --- | --- | --- |\n", postRounds, names[0], names[1])
	for _, process := range append(measuredProcesses, "all") {
		ours, other := median(costs[process][0]), median(costs[process][1])
		fmt.Printf("| %s | %.1f | %.1f | %.3f |\n", process, ours, other, ours/other)
	}
	return nil
}

// measurePosts adds up each process's CPU time a POST over one turn.
func measurePosts(ctx context.Context, env stack.Env, accounts []benchAccount, duration time.Duration, add func(process string, cost float64)) error {
	before, err := stackTimes(env)
	if err != nil {
		return err
	}
	address := env.GatewayURL[len("http://"):]
	posts, err := openLoop{connections: 64, rate: 1000, duration: duration}.run(ctx, address, post(address, accounts))
	if err != nil {
		return err
	}
	after, err := stackTimes(env)
	if err != nil {
		return err
	}
	count := posts.Rate * duration.Seconds()
	var all float64
	for _, name := range measuredProcesses {
		cost := float64((after[name] - before[name]).Microseconds()) / count
		add(name, cost)
		all += cost
	}
	add("all", all)
	return nil
}

// stackTimes are the CPU times of a stack's processes with the children that they have now.
func stackTimes(env stack.Env) (map[string]time.Duration, error) {
	processes := map[string][]int{}
	for _, name := range measuredProcesses {
		processes[name] = processTree(env.PID(name))
	}
	return cpuTimes(processes)
}
