package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"intents.internal/core/rooms"
	"intents.internal/core/watch/watched"
	"intents.internal/pkg/caip"
)

// resumeChain runs `core chains resume CHAIN --from N`.
func resumeChain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("chains resume", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	from := flags.Uint64("from", 0, "the first block that is read again")
	id, err := caip.ParseChainID(args[0])
	if err != nil {
		return usageError(fmt.Sprintf("%q must be a chain id such as eip155:1; %s", args[0], string(chainsUsage)))
	}
	if err := flags.Parse(args[1:]); err != nil {
		return usageError(fmt.Sprintf("%v; %s", err, string(chainsUsage)))
	}
	if flags.NFlag() == 0 || flags.NArg() > 0 {
		return chainsUsage
	}
	return withStore(func(store *rooms.Rooms) error {
		if err := store.CheckMigrated(ctx); err != nil {
			return err
		}
		return resume(ctx, store, id, *from)
	})
}

func resume(ctx context.Context, store *rooms.Rooms, id caip.ChainID, from uint64) error {
	current, err := store.Registry.Registry(ctx)
	if err != nil {
		return err
	}
	if _, known := current.Chain(id); !known {
		return fmt.Errorf("%s is not registered; import it with core chains import", id)
	}
	before, err := store.Watched.Progress(ctx, id)
	if err != nil {
		return err
	}
	if before.Read && from > before.Head {
		return fmt.Errorf("block %d is above block %d, the newest that was read: what happened between would be missed", from, before.Head)
	}
	err = store.Watched.Resume(ctx, id, from)
	if errors.Is(err, watched.ErrNotWatched) {
		return fmt.Errorf("%s has never been watched, so there is nothing to resume: name its providers in CORE_RPC_FILE", id)
	}
	if err != nil {
		return err
	}
	why := "it was not stopped"
	if before.Stopped != "" {
		why = "it was stopped because " + before.Stopped
	}
	fmt.Printf("%s is read again from block %d on; %s\n", id, from, why)
	return nil
}
