package command

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/pkg/caip"
)

const (
	chainsUsage = usageError("use: core chains import FILE, core chains list, core chains check [FILE], or core chains resume CHAIN --from N")
	tokensUsage = usageError("use: core tokens import [--source NAME] [--license SPDX] FILE, core tokens check [FILE], or core tokens sources")
)

// changeChains runs `core chains …`.
func changeChains(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "list":
		return withStore(func(store *rooms.Rooms) error { return listChains(ctx, store, os.Stdout) })
	case (len(args) == 1 || len(args) == 2) && args[0] == "check":
		return checkChains(ctx, args[1:]...)
	case len(args) > 1 && args[0] == "resume":
		return resumeChain(ctx, args[1:])
	case len(args) != 2 || args[0] != "import":
		return chainsUsage
	}
	return withStore(func(store *rooms.Rooms) error {
		if err := store.CheckMigrated(ctx); err != nil {
			return err
		}
		text, err := readList(args[1])
		if err != nil {
			return err
		}
		return importChains(ctx, store, text)
	})
}

// changeTokens runs `core tokens …`.
func changeTokens(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "sources":
		return withStore(func(store *rooms.Rooms) error { return printTokenSources(ctx, store) })
	case (len(args) == 1 || len(args) == 2) && args[0] == "check":
		return checkTokens(ctx, args[1:]...)
	}
	command, err := parseTokenImport(args)
	if err != nil {
		return err
	}
	return withStore(func(store *rooms.Rooms) error {
		if err := store.CheckMigrated(ctx); err != nil {
			return err
		}
		return command.run(ctx, store)
	})
}

// tokenImport is one `core tokens import`.
type tokenImport struct {
	// File is its path, or - for standard input.
	File string
	// Origin overrides what the rows of the list say.
	Origin registry.Origin
}

func parseTokenImport(args []string) (tokenImport, error) {
	var command tokenImport
	flags := flag.NewFlagSet("tokens import", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&command.Origin.Source, "source", "", "where the list was published")
	flags.StringVar(&command.Origin.License, "license", "", "its SPDX license expression")
	if len(args) == 0 || args[0] != "import" {
		return command, tokensUsage
	}
	var files []string
	for rest := args[1:]; ; rest = flags.Args()[1:] {
		if err := flags.Parse(rest); err != nil {
			return command, usageError(fmt.Sprintf("%v; %s", err, string(tokensUsage)))
		}
		if flags.NArg() == 0 {
			break
		}
		files = append(files, flags.Arg(0))
	}
	if len(files) != 1 {
		return command, tokensUsage
	}
	command.File = files[0]
	if err := command.Origin.Validate(); err != nil {
		return command, usageError(err.Error())
	}
	return command, nil
}

func (c tokenImport) run(ctx context.Context, store *rooms.Rooms) error {
	text, err := readList(c.File)
	if err != nil {
		return err
	}
	current, err := store.Registry.Registry(ctx)
	if err != nil {
		return err
	}
	list, err := registry.ReadTokenList(bytes.NewReader(text), registered(current))
	if err != nil {
		return err
	}
	for i := range list.Tokens {
		origin := &list.Tokens[i].Origin
		origin.Source = cmp.Or(c.Origin.Source, origin.Source, list.Name)
		origin.License = cmp.Or(c.Origin.License, origin.License)
	}
	return importTokens(ctx, store, current, list)
}

// registered reports whether a chain is known.
func registered(current *registry.Snapshot) func(caip.ChainID) bool {
	return func(id caip.ChainID) bool {
		_, ok := current.Chain(id)
		return ok
	}
}

func importChains(ctx context.Context, store *rooms.Rooms, text []byte) error {
	list, err := registry.ReadChainList(bytes.NewReader(text))
	if err != nil {
		return err
	}
	printRefusedChains(list)
	imported, err := store.Registry.ImportChains(ctx, list.Chains, time.Now(), progress("chains", len(list.Chains)))
	if err != nil {
		return err
	}
	printSummary("chains", imported, len(list.Chains), len(list.Refused))
	return refusedRows(len(list.Refused))
}

func printRefusedChains(list registry.ChainList) {
	for _, r := range list.Refused {
		printRefusal("chain", r.Row, r.Name, r.Reason)
	}
}

// printLeftOut prints which rows of a list are refused, and how many are of chains that are not registered.
func printLeftOut(list registry.TokenList) {
	for _, r := range list.Refused {
		printRefusal("token", r.Row, r.Name, r.Reason)
	}
	for _, number := range slices.Sorted(maps.Keys(list.Unknown)) {
		fmt.Printf("left out: %d tokens of %s, which is not registered; import the chain with `core chains import` first to have them\n",
			list.Unknown[number], caip.EIP155Chain(number))
	}
}

func importTokens(ctx context.Context, store *rooms.Rooms, current *registry.Snapshot, list registry.TokenList) error {
	printLeftOut(list)
	imported, err := store.Registry.ImportTokens(ctx, list.Tokens, time.Now(), progress("tokens", len(list.Tokens)))
	if err != nil {
		return err
	}
	unlicensed := 0
	for _, t := range list.Tokens {
		if before, ok := current.Token(t.ID); ok && before.Decimals != t.Decimals {
			fmt.Printf("changed: %s %s had %d decimals and has %d now; the contract's decimals() tells which is right\n",
				t.Symbol, t.ID, before.Decimals, t.Decimals)
		}
		if t.License == "" {
			unlicensed++
		}
	}
	if unlicensed > 0 {
		fmt.Printf("no licence is recorded of %d tokens; --license SPDX records one\n", unlicensed)
	}
	printSummary("tokens", imported, len(list.Tokens), len(list.Refused))
	return refusedRows(len(list.Refused))
}

// printTokenSources prints a line a source: its tokens, licence and name, with - for what is not recorded.
func printTokenSources(ctx context.Context, store *rooms.Rooms) error {
	sources, err := store.Registry.TokenSources(ctx)
	if err != nil {
		return err
	}
	for _, s := range sources {
		fmt.Printf("%7d  %-20s  %s\n", s.Tokens, cmp.Or(s.License, "-"), cmp.Or(s.Source, "-"))
	}
	return nil
}

func printRefusal(kind string, row int, name, reason string) {
	fmt.Printf("refused %s in row %d %q: %s\n", kind, row, name, reason)
}

func printSummary(kind string, imported registry.Imported, accepted, refused int) {
	fmt.Printf("%s: %d added, %d updated, %d unchanged, %d refused\n",
		kind, imported.Added, imported.Updated, accepted-imported.Added-imported.Updated, refused)
}

func refusedRows(count int) error {
	if count == 0 {
		return nil
	}
	return fmt.Errorf("%d rows were refused, the others are imported; correct the rows named above and import the list again", count)
}

// progress prints a line a second at the most; an import that is over sooner prints none.
func progress(kind string, total int) func(done int) {
	next := time.Now().Add(time.Second)
	return func(done int) {
		if now := time.Now(); now.After(next) {
			fmt.Printf("%s: %d of %d\n", kind, done, total)
			next = now.Add(time.Second)
		}
	}
}
