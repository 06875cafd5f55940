package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/store/postgres"
)

// singleInsert is the store's statement for one row: an intent and its first event.
const singleInsert = `\set n random(1, 1000000000)
WITH inserted AS (
  INSERT INTO transfers (id, account_id, key_id, environment, type, status, order_id, order_scheme,
    source_chain, source_account, source_token, source_amount,
    destination_chain, destination_account, destination_token, destination_amount,
    origin_domain, destination_domain, origin_settler, destination_settler, deadline, reference, created_at, updated_at)
  VALUES (gen_random_uuid(), '%[1]s', '%[1]s', 'test', 'transfer', 'created', sha256((:n || random()::text)::bytea), 'erc7683-v1/OrderData',
    'eip155:11155111', '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE', :n,
    'eip155:11155111', '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE', :n,
    11155111, 11155111, '', '', now() + interval '1 hour', 'order-' || :n, now(), now())
  RETURNING id, account_id, status, created_at)
INSERT INTO events (account_id, transfer_id, to_status, occurred_at, sequence)
SELECT account_id, id, status, created_at, 1 FROM inserted;
`

// insertTurn is the result of one turn of pgbench or the store: durable rows per second, and CPU µs per row of Postgres's
// processes and of this one, which also creates the intents.
type insertTurn struct{ rate, postgres, client float64 }

// writes compares the store's batches with one transaction per row, in turns on one server.
func writes(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("writes", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "turns of each")
	duration := flags.Duration("time", 8*time.Second, "duration of a turn")
	list := flags.String("clients", "64,256", "numbers of concurrent clients, separated by commas")
	profile := flags.String("profile", "", "file for a CPU profile of this process, none where empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	clients, err := parseCounts(*list)
	if err != nil {
		return err
	}
	pgbench, err := findPgbench()
	if err != nil {
		return err
	}
	d, err := openDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	script := filepath.Join(d.dir, "insert.sql")
	account := uuid.New()
	if err := os.WriteFile(script, fmt.Appendf(nil, singleInsert, account), 0o600); err != nil {
		return err
	}
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	single, shared := make([][]insertTurn, len(clients)), make([][]insertTurn, len(clients))
	for round := range *rounds {
		for n, count := range clients {
			one, err := d.measureInserts(func() (int, error) { return pgbenchRows(ctx, pgbench, d.server.URL, script, count, *duration) })
			if err != nil {
				return err
			}
			many, err := d.measureInserts(func() (int, error) { return storeRows(ctx, d.store, count, *duration) })
			if err != nil {
				return err
			}
			single[n], shared[n] = append(single[n], one), append(shared[n], many)
			fmt.Printf("round %d of %d, %d clients: pgbench %.0f/s, store %.0f/s, ratio %.2f; Postgres %.0f and %.0f µs a row\n",
				round+1, *rounds, count, one.rate, many.rate, many.rate/one.rate, one.postgres, many.postgres)
		}
	}
	fmt.Print("\n| durable inserts, medians | clients | a second | CPU µs a row: Postgres | client |\n| --- | --- | --- | --- | --- |\n")
	for n, count := range clients {
		printInserts("pgbench, prepared, one transaction a row", count, single[n])
		printInserts("the store, shared commits", count, shared[n])
		ratios := make([]float64, *rounds)
		for round := range ratios {
			ratios[round] = shared[n][round].rate / single[n][round].rate
		}
		fmt.Printf("| ratio, median of the rounds | %d | %.2f | | |\n", count, median(ratios))
	}
	return nil
}

func printInserts(name string, clients int, turns []insertTurn) {
	of := func(figure func(insertTurn) float64) float64 {
		values := make([]float64, len(turns))
		for n, t := range turns {
			values[n] = figure(t)
		}
		return median(values)
	}
	fmt.Printf("| %s | %d | %.0f | %.0f | %.0f |\n", name, clients, of(func(t insertTurn) float64 { return t.rate }),
		of(func(t insertTurn) float64 { return t.postgres }), of(func(t insertTurn) float64 { return t.client }))
}

func parseCounts(list string) (counts []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			return nil, fmt.Errorf("-clients: %q is not a number of clients", text)
		}
		counts = append(counts, count)
	}
	return counts, nil
}

// measureInserts measures work, which returns the number of rows that it inserted.
func (d *database) measureInserts(work func() (int, error)) (insertTurn, error) {
	cpu := func() ([2]time.Duration, error) {
		server, err := cpuTime(processTree(d.server.PID()))
		own, ownErr := cpuTime([]int{os.Getpid()})
		return [2]time.Duration{server, own}, errors.Join(err, ownErr)
	}
	before, err := cpu()
	if err != nil {
		return insertTurn{}, err
	}
	began := time.Now()
	rows, err := work()
	took := time.Since(began)
	after, cpuErr := cpu()
	if err := errors.Join(err, cpuErr); err != nil {
		return insertTurn{}, err
	}
	if rows == 0 {
		return insertTurn{}, errors.New("no row was inserted")
	}
	each := func(n int) float64 { return float64((after[n] - before[n]).Microseconds()) / float64(rows) }
	return insertTurn{rate: float64(rows) / took.Seconds(), postgres: each(0), client: each(1)}, nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// storeRows inserts through the store for duration and returns how many rows were acknowledged.
func storeRows(ctx context.Context, store *postgres.Store, clients int, duration time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	known, account := sepolia(), uuid.New()
	var stored atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for n := client; ctx.Err() == nil; n += clients {
				intent, err := newIntent(account, n, known)
				if err == nil {
					_, err = store.InsertTransfer(ctx, intent, postgres.Idempotency{})
				}
				if err != nil && ctx.Err() == nil {
					failed.Store(&err)
					return
				}
				if err == nil {
					stored.Add(1)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return int(stored.Load()), nil
}

var pgbenchTransactions = regexp.MustCompile(`number of transactions actually processed: ([0-9]+)`)

func pgbenchRows(ctx context.Context, pgbench, databaseURL, script string, clients int, duration time.Duration) (int, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return 0, err
	}
	command := exec.CommandContext(ctx, pgbench, "-n", "-M", "prepared", "-f", script, "-c", strconv.Itoa(clients), "-j", "2",
		"-T", strconv.Itoa(int(duration.Seconds())), "-h", u.Query().Get("host"), "-U", u.User.Username(), u.Path[1:])
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		return 0, fmt.Errorf("run pgbench: %w\n%s", err, out.String())
	}
	match := pgbenchTransactions.FindSubmatch(out.Bytes())
	if match == nil {
		return 0, fmt.Errorf("pgbench printed no number of transactions:\n%s", out.String())
	}
	return strconv.Atoi(string(match[1]))
}

// findPgbench looks on PATH and in Debian's directories.
func findPgbench() (string, error) {
	if path, err := exec.LookPath("pgbench"); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) == 0 {
		return "", errors.New("pgbench is not installed; on Debian: apt-get install postgresql")
	}
	return found[len(found)-1], nil
}
