package command

import (
	"bytes"
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

	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/rpc"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
)

// checksAtOnce bounds the providers that are checked concurrently.
const checksAtOnce = 16

// checkChains runs `core chains check`: a line on standard error as each provider has answered, then the table on standard output. With a
// file it checks the chains of that list as they would be after its import, and stores nothing.
func checkChains(ctx context.Context, file ...string) error {
	return withProviders(ctx, func(store *rooms.Rooms, current *registry.Snapshot, client *rpc.Client) error {
		progress, err := store.Watched.AllProgress(ctx)
		if err != nil {
			return err
		}
		ids := chainsToCheck(client, current)
		var unread error
		if len(file) > 0 {
			if current, unread, err = readPlanned(file[0], current); err != nil {
				return err
			}
			ids = ids[:0]
			for _, c := range current.Chains {
				ids = append(ids, c.ID)
			}
		}
		findings := checkAll(ctx, client, ids, current, progress)
		if len(file) > 0 {
			requireProviders(findings, current)
		}
		if err := printFindings(os.Stdout, findings); err != nil {
			return err
		}
		return errors.Join(unread, faults(findings))
	})
}

// withProviders has a check read the registry and ask the providers of CORE_RPC_FILE.
func withProviders(ctx context.Context, check func(store *rooms.Rooms, current *registry.Snapshot, client *rpc.Client) error) (err error) {
	config, providers, err := readWithProviders(Config.checkDatabase)
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
	current, err := store.Registry.Registry(ctx)
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
	return check(store, current, client)
}

// readPlanned returns a registry with only the chains of a file, as they would be after its import. refused is set if some of its
// rows would not be imported.
func readPlanned(file string, current *registry.Snapshot) (planned *registry.Snapshot, refused, err error) {
	text, err := readList(file)
	if err != nil {
		return nil, nil, err
	}
	list, err := registry.ReadChainList(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	printRefusedChains(list)
	chains := make([]registry.Chain, len(list.Chains))
	for i, entry := range list.Chains {
		chains[i] = entry.Chain
		if known, ok := current.Chain(entry.ID); ok {
			chains[i] = entry.Over(known)
		}
	}
	return registry.NewSnapshot(current.Version, chains, slices.Clone(current.Tokens)), unusableRows(len(list.Refused)), nil
}

func unusableRows(count int) error {
	if count == 0 {
		return nil
	}
	return fmt.Errorf("%d rows would be refused; correct the rows named above", count)
}

// requireProviders reports a fault for each chain whose settlements no provider could check.
func requireProviders(findings []finding, planned *registry.Snapshot) {
	for i := range findings {
		id, _ := caip.ParseChainID(findings[i].chain)
		if c, _ := planned.Chain(id); findings[i].host == "" && len(c.Settlements) > 0 {
			findings[i].problem("no providers, so its settlements are not checked")
		}
	}
}

// checkAll checks all providers of some chains concurrently. Chains are in the order of ids, providers in the configured order; a
// chain without providers has one finding.
func checkAll(
	ctx context.Context, client *rpc.Client, ids []caip.ChainID, current *registry.Snapshot, progress map[caip.ChainID]watched.Progress,
) []finding {
	findings := []*finding{}
	var asking sync.WaitGroup
	turns := make(chan struct{}, checksAtOnce)
	var printing sync.Mutex
	for _, id := range ids {
		var definition *registry.Chain
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
				*f = checkProvider(ctx, id.String(), name, p, definition, current.TokensOn(id))
				if why := progress[id].Stopped; why != "" {
					f.problem("the chain is stopped, as %s: core chains resume", why)
				}
				printing.Lock()
				defer printing.Unlock()
				fmt.Fprintf(os.Stderr, "%s %s: %s\n", f.chain, f.host, cmp.Or(strings.Join(f.problems, "; "), "ok"))
				for _, note := range f.notes {
					fmt.Fprintf(os.Stderr, "%s %s: warning: %s\n", f.chain, f.host, note)
				}
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
	fmt.Fprintln(table, "chain\tname\thost\tlatency\thead\tage\tsafe\tfinalized\tlogs\tsigning\tproblem")
	word := map[bool]string{true: "yes", false: "no"}
	for _, f := range findings {
		measured := "-\t-\t-\t-\t-\t-\t-"
		if f.answered {
			measured = fmt.Sprintf("%d ms\t%d\t%s\t%s\t%s\t%d\t%s", max(1, f.latency.Milliseconds()), f.head, f.age.Round(time.Second),
				word[f.safe], word[f.finalized], f.logRange, cmp.Or(strings.Join(f.signing, "; "), "-"))
		}
		problem := cmp.Or(strings.Join(f.problems, "; "), "-")
		if f.host == "" {
			problem = cmp.Or(strings.Join(f.problems, "; "), "no providers: not watched")
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
	return faultyLines(faulty, len(findings))
}

func faultyLines(faulty, lines int) error {
	if faulty == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d lines have a problem", faulty, lines)
}
