package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"intents.internal/core/chain"
	"intents.internal/core/postgres"
	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/pkg/caip"
)

// checksAtOnce bounds the providers that are asked side by side.
const checksAtOnce = 16

// checkChains runs `core chains check`: a line on standard error as each provider has answered, then the table on standard output.
func checkChains(ctx context.Context) (err error) {
	config, providers, err := readWithProviders(Config.ValidateDatabase)
	if err != nil {
		return err
	}
	store, err := openStore(config, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.CheckMigrated(ctx); err != nil {
		return err
	}
	current, err := store.Registry(ctx)
	if err != nil {
		return err
	}
	progress, err := store.AllProgress(ctx)
	if err != nil {
		return err
	}
	client, err := rpc.NewClient(providers, rpc.Options{})
	if err != nil {
		return fmt.Errorf("CORE_RPC_FILE: %w", err)
	}
	defer client.Close()
	if config.RPCFile == "" {
		fmt.Fprintln(os.Stderr, "CORE_RPC_FILE names no file, so no chain is watched")
	}
	findings := checkAll(ctx, client, current, progress)
	if err := printFindings(os.Stdout, findings); err != nil {
		return err
	}
	return faults(findings)
}

// checkAll asks all providers side by side. Chains are ordered by their number, providers as they are configured; a chain without
// providers has one finding.
func checkAll(ctx context.Context, client *rpc.Client, current *registry.Snapshot, progress map[caip.ChainID]postgres.Progress) []finding {
	findings := []*finding{}
	var asking sync.WaitGroup
	turns := make(chan struct{}, checksAtOnce)
	var printing sync.Mutex
	for _, id := range chainsToCheck(client, current) {
		var definition *chain.Chain
		name := "-"
		if known, ok := current.Chain(id); ok {
			definition, name = &known, known.Name
		}
		providers, ok := client.Chain(id)
		if !ok {
			findings = append(findings, &finding{chain: id.String(), name: name})
			continue
		}
		for _, p := range providers.All() {
			f := &finding{}
			findings = append(findings, f)
			asking.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				*f = checkProvider(ctx, id.String(), name, p, definition)
				if why := progress[id].Stopped; why != "" {
					f.problem("the chain is stopped, as %s: core chains resume", why)
				}
				printing.Lock()
				defer printing.Unlock()
				fmt.Fprintf(os.Stderr, "%s %s: %s\n", f.chain, f.host, cmp.Or(strings.Join(f.problems, "; "), "ok"))
			})
		}
	}
	asking.Wait()
	checked := make([]finding, len(findings))
	for i, f := range findings {
		checked[i] = *f
	}
	return checked
}

// chainsToCheck are the registered chains and those that have providers.
func chainsToCheck(client *rpc.Client, current *registry.Snapshot) []caip.ChainID {
	var ids []caip.ChainID
	for _, c := range current.Chains {
		ids = append(ids, c.ID)
	}
	for _, c := range client.Chains() {
		if _, known := current.Chain(c.ID()); !known {
			ids = append(ids, c.ID())
		}
	}
	slices.SortFunc(ids, func(a, b caip.ChainID) int {
		x, _ := a.Number()
		y, _ := b.Number()
		return cmp.Compare(x, y)
	})
	return ids
}

func printFindings(to io.Writer, findings []finding) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "chain\tname\thost\tlatency\thead\tage\tsafe\tfinalized\tlogs\tproblem")
	word := map[bool]string{true: "yes", false: "no"}
	for _, f := range findings {
		measured := "-\t-\t-\t-\t-\t-"
		if f.answered {
			measured = fmt.Sprintf("%d ms\t%d\t%s\t%s\t%s\t%d", max(1, f.latency.Milliseconds()), f.head, f.age.Round(time.Second), word[f.safe], word[f.finalized], f.logRange)
		}
		problem := cmp.Or(strings.Join(f.problems, "; "), "-")
		if f.host == "" {
			problem = "no providers: not watched"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", f.chain, f.name, cmp.Or(f.host, "-"), measured, problem)
	}
	return table.Flush()
}

func faults(findings []finding) error {
	faulty := 0
	for _, f := range findings {
		if len(f.problems) > 0 {
			faulty++
		}
	}
	if faulty == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d lines have a problem", faulty, len(findings))
}
