package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/caip"
)

// lists measures the first page of each kind of list, with ten times as many intents of one account at each step.
func lists(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("lists", flag.ContinueOnError)
	maxRows := flags.Int("rows", 10_000_000, "number of intents at the end; the steps are 1000, 10000, … up to it")
	repeats := flags.Int("repeats", 21, "how often each list is read")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d, err := openDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	conn, err := pgx.Connect(ctx, d.server.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()

	account := uuid.New()
	rows := map[string][]string{}
	var sizes []string
	loaded := 0
	for size := 1000; size <= *maxRows; size *= 10 {
		if err := copyIntents(ctx, conn, account, loaded, size); err != nil {
			return err
		}
		loaded = size
		sizes = append(sizes, fmt.Sprintf("%d", size))
		for _, c := range listCases(size) {
			latency, err := firstPage(ctx, d.store, account, c.filter, *repeats)
			if err != nil {
				return fmt.Errorf("%s at %d rows: %w", c.name, size, err)
			}
			rows[c.name] = append(rows[c.name], fmt.Sprintf("%.2f", latency.Seconds()*1000))
		}
		fmt.Printf("%d rows measured\n", size)
	}
	fmt.Printf("\nMedian milliseconds to read a page of 100, by intents of the account:\n\n| list | %s | plan |\n| --- | %s--- |\n",
		strings.Join(sizes, " | "), strings.Repeat("--- | ", len(sizes)))
	for _, c := range listCases(loaded) {
		plan, err := explain(ctx, d.store, account, c.filter)
		if err != nil {
			return err
		}
		if loaded >= minCheckedRows && !plan.isIndexed() {
			return fmt.Errorf("%s at %d rows: the plan reads or sorts the whole table:\n%s", c.name, loaded, plan.text)
		}
		fmt.Printf("| %s | %s | %s |\n", c.name, strings.Join(rows[c.name], " | "), strings.Join(plan.nodes, "; "))
	}
	return nil
}

// minCheckedRows is the least number of intents for which every plan must use an index. For fewer, Postgres chooses a bitmap scan and
// a sort, which are as fast then.
const minCheckedRows = 10_000

// creationInterval is the time between the creation of two intents.
const creationInterval = 100 * time.Millisecond

type listCase struct {
	name   string
	filter postgres.TransferFilter
}

// listCases returns the kinds of lists. Their cursors point to the middle of size intents.
func listCases(size int) []listCase {
	half := time.Now().Add(-time.Duration(size) / 2 * creationInterval)
	middle := &postgres.KeysetCursor{ID: syntheticID(half, 0), UpdatedAt: half}
	return []listCase{
		{"all", postgres.TransferFilter{}},
		{"all, from a cursor", postgres.TransferFilter{After: middle}},
		{"type", postgres.TransferFilter{Type: transfer.Transfer}},
		{"type of which there is none", postgres.TransferFilter{Type: transfer.Bridge}},
		{"status", postgres.TransferFilter{Statuses: []transfer.Status{transfer.Cancelled}}},
		{"three statuses", postgres.TransferFilter{Statuses: []transfer.Status{transfer.Created, transfer.Cancelled, transfer.Expired}}},
		{"chain-id", postgres.TransferFilter{Chain: caip.EIP155Chain(11155111)}},
		{"order-id", postgres.TransferFilter{OrderID: &[32]byte{1}}},
		{"hash", postgres.TransferFilter{Hash: "0x" + strings.Repeat("0", 64)}},
		{"reference", postgres.TransferFilter{Reference: "order-7"}},
		{"updated-since", postgres.TransferFilter{UpdatedSince: time.Now().Add(-time.Hour)}},
		{"updated-since, from a cursor", postgres.TransferFilter{UpdatedSince: time.Now().Add(-30 * 24 * time.Hour), After: middle}},
	}
}

// firstPage returns the median time to read the first 100 intents.
func firstPage(ctx context.Context, store *postgres.Store, account uuid.UUID, filter postgres.TransferFilter, repeats int) (time.Duration, error) {
	filter.Limit = 100
	var times []float64
	for range repeats {
		began := time.Now()
		for _, err := range store.Transfers(ctx, account, filter) {
			if err != nil {
				return 0, err
			}
		}
		times = append(times, float64(time.Since(began)))
	}
	return time.Duration(median(times)), nil
}

// queryPlan is the output of EXPLAIN and the names of its nodes, without Limit and Subquery Scan.
type queryPlan struct {
	text  string
	nodes []string
}

func explain(ctx context.Context, store *postgres.Store, account uuid.UUID, filter postgres.TransferFilter) (queryPlan, error) {
	filter.Limit = 100
	text, err := store.ExplainTransfers(ctx, account, filter)
	if err != nil {
		return queryPlan{}, err
	}
	plan := queryPlan{text: text}
	for line := range strings.SplitSeq(text, "\n") {
		name, _, ok := strings.Cut(strings.TrimLeft(line, " ->"), "  (cost")
		if ok && !strings.HasPrefix(name, "Limit") && !strings.HasPrefix(name, "Subquery") {
			plan.nodes = append(plan.nodes, name)
		}
	}
	return plan, nil
}

// isIndexed reports whether the plan neither reads a whole table nor sorts.
func (p queryPlan) isIndexed() bool {
	return !slices.ContainsFunc(p.nodes, func(node string) bool { return strings.HasPrefix(node, "Seq Scan") || node == "Sort" })
}

// copyIntents inserts the intents with numbers in the range from–to by COPY, created at creationInterval before now. One in ten
// is cancelled.
func copyIntents(ctx context.Context, conn *pgx.Conn, account uuid.UUID, from, to int) error {
	registry := sepolia()
	pattern, err := newIntent(account, 0, registry)
	if err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	next := now.Add(2 * time.Second)
	columns := []string{
		"id", "account_id", "key_id", "type", "status", "order_id", "source_chain", "source_account", "source_token", "source_amount",
		"destination_chain", "destination_account", "destination_token", "destination_amount", "origin_domain", "destination_domain",
		"origin_settler", "destination_settler", "deadline", "reference", "created_at", "updated_at",
	}
	n := from
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"transfers"}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		if n == to {
			return nil, nil
		}
		created := now.Add(-time.Duration(n) * creationInterval)
		if time.Now().After(next) {
			fmt.Printf("loading: %d of %d rows\n", n, to)
			next = time.Now().Add(2 * time.Second)
		}
		id, order := syntheticID(created, n), syntheticOrder(n)
		status := transfer.Created
		if n%10 == 0 {
			status = transfer.Cancelled
		}
		c := pattern.Source.Account.Chain.String()
		n++
		return []any{
			id, account, account, "transfer", string(status), order, c, pattern.Source.Account.Address, pattern.Source.Token.Address, "1",
			c, pattern.Destination.Account.Address, pattern.Source.Token.Address, "1", 11155111, 11155111,
			"", "", now.Add(time.Hour), fmt.Sprintf("order-%d", n), created, created,
		}, nil
	}))
	if err != nil {
		return fmt.Errorf("load intents: %w", err)
	}
	if _, err := conn.Exec(ctx, "VACUUM ANALYZE transfers"); err != nil {
		return fmt.Errorf("analyze the intents: %w", err)
	}
	return nil
}
