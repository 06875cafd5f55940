package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"intents.internal/core/rooms"
)

// listChains runs `core chains list`: a table of the registered chains in the order of their ids.
func listChains(ctx context.Context, store *rooms.Rooms, to io.Writer) error {
	if err := store.CheckMigrated(ctx); err != nil {
		return err
	}
	current, err := store.Registry.Registry(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "chain\tname\tenvironment\tcurrency\tfinality\tconfirmations\tblock time\tsettlements\texplorer")
	for _, c := range current.Chains {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\n",
			c.ID, c.Name, c.Environment, c.NativeCurrency.Symbol, c.Finality, c.Confirmations, c.BlockTime, len(c.Settlements), cmp.Or(c.Explorer, "none"))
	}
	return table.Flush()
}
