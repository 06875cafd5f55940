package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/rooms"
)

// accountsPage is how many accounts are read and printed at a time.
const accountsPage = 1000

// listAccounts runs `core accounts list`: a table of the accounts that live, oldest first, page by page.
func listAccounts(ctx context.Context, store *rooms.Rooms, to io.Writer) error {
	if err := store.CheckMigrated(ctx); err != nil {
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "id\taddress\tname\tcreated\tlive keys\ttest keys\tpasskeys\tlimit\tstate")
	for after := uuid.Nil; ; {
		page, err := store.Identities.ListAccounts(ctx, after, accountsPage)
		if err != nil {
			return err
		}
		for _, a := range page {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", a.ID, a.Email, printable(a.Name),
				a.CreatedAt.UTC().Format(time.DateOnly), a.LiveKeys, a.TestKeys, a.Passkeys, a.Limit, accountState(a))
			after = a.ID
		}
		if err := table.Flush(); err != nil || len(page) < accountsPage {
			return err
		}
	}
}

// printable is a name without what moves a terminal's cursor or the table's columns.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, name)
}

// accountState is such as "disabled, unverified", or "active".
func accountState(a identity.ListedAccount) string {
	var words []string
	for _, of := range []struct {
		holds bool
		word  string
	}{{a.Disabled, "disabled"}, {a.Shared, "shared"}, {!a.Verified && !a.Shared, "unverified"}} {
		if of.holds {
			words = append(words, of.word)
		}
	}
	return cmp.Or(strings.Join(words, ", "), "active")
}
