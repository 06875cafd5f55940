package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"intents.internal/core/chain"
	"intents.internal/core/postgres"
	"intents.internal/core/token"
	"intents.internal/pkg/caip"
)

// importList runs `core chains import FILE` and `core tokens import FILE`.
func importList(ctx context.Context, kind string, args []string) error {
	if len(args) != 2 || args[0] != "import" {
		return usageError(fmt.Sprintf("use: core %s import FILE", kind))
	}
	return withStore(nil, 0, func(store *postgres.Store) (err error) {
		if err := store.CheckMigrated(ctx); err != nil {
			return err
		}
		file := os.Stdin
		if args[1] != "-" {
			if file, err = os.Open(args[1]); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, file.Close()) }()
		}
		in := bufio.NewReader(file)
		if kind == "chains" {
			return importChains(ctx, store, in)
		}
		return importTokens(ctx, store, in)
	})
}

func importChains(ctx context.Context, store *postgres.Store, in io.Reader) error {
	list, err := chain.ReadList(in)
	if err != nil {
		return err
	}
	for _, r := range list.Refused {
		printRefusal("chain", r.Row, r.Name, r.Reason)
	}
	imported, err := store.ImportChains(ctx, list.Chains, time.Now(), progress("chains", len(list.Chains)))
	if err != nil {
		return err
	}
	printSummary("chains", imported, len(list.Chains), len(list.Refused))
	return nil
}

func importTokens(ctx context.Context, store *postgres.Store, in io.Reader) error {
	known, err := store.Registry(ctx)
	if err != nil {
		return err
	}
	list, err := token.ReadList(in, func(id caip.ChainID) bool {
		_, ok := known.Chain(id)
		return ok
	})
	if err != nil {
		return err
	}
	for _, r := range list.Refused {
		printRefusal("token", r.Row, r.Name, r.Reason)
	}
	imported, err := store.ImportTokens(ctx, list.Tokens, time.Now(), progress("tokens", len(list.Tokens)))
	if err != nil {
		return err
	}
	printSummary("tokens", imported, len(list.Tokens), len(list.Refused))
	return nil
}

func printRefusal(kind string, row int, name, reason string) {
	fmt.Printf("refused %s in row %d %q: %s\n", kind, row, name, reason)
}

func printSummary(kind string, imported postgres.Imported, accepted, refused int) {
	fmt.Printf("%s: %d added, %d updated, %d unchanged, %d refused\n",
		kind, imported.Added, imported.Updated, accepted-imported.Added-imported.Updated, refused)
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
