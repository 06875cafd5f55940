package command

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/rpc"
	"intents.internal/core/screening"
	"intents.internal/core/watch"
	"intents.internal/pkg/settings"
)

// readWithProviders reads the settings and the RPC file that they name, and reports the faults of both at once. There are no providers
// without a file.
func readWithProviders(check func(Config, *settings.Faults)) (config Config, providers rpc.Providers, err error) {
	config, err = readConfig(func(c Config, f *settings.Faults) {
		check(c, f)
		if c.RPCFile != "" {
			var unreadable error
			providers, unreadable = rpc.ReadFile(c.RPCFile)
			f.AddError("CORE_RPC_FILE", unreadable)
		}
	})
	return config, providers, err
}

// chainWatch is what core does about the chains of the RPC file. Without a file it does nothing for all of them.
type chainWatch struct {
	client   *rpc.Client
	watcher  *watch.Watcher
	activity *watch.Activity
}

func newChains(
	config Config, providers rpc.Providers, store *rooms.Rooms, live *registry.LiveRegistry, screen *screening.Screen, log *slog.Logger, metrics prometheus.Registerer,
) (chainWatch, error) {
	client, err := rpc.NewClient(providers, rpc.Options{Registry: metrics})
	if err != nil {
		return chainWatch{}, fmt.Errorf("CORE_RPC_FILE: %w", err)
	}
	for id := range providers {
		if _, known := live.Current().Chain(id); !known {
			log.Warn("chain of CORE_RPC_FILE is not registered and not watched; import it with core chains import", "chain", id.String())
		}
	}
	watcher := watch.New(watch.Config{
		Store: store.Intents, Watched: store.Watched, Registry: live, Client: client, Log: log, Metrics: metrics, Screening: screen,
		Tick: config.ChainTick, Grace: config.ChainGrace,
	})
	return chainWatch{client, watcher, watch.NewActivity(store.Intents, config.ChainGrace, watcher.Wake, log)}, nil
}

// start starts the workers of core serve, which run until ctx ends.
func (c chainWatch) start(ctx context.Context, group *errgroup.Group, config Config) {
	group.Go(func() error { c.activity.Run(ctx); return nil })
	group.Go(func() error { c.watcher.RunReports(ctx); return nil })
	if config.Watch {
		group.Go(func() error { c.watcher.Run(ctx); return nil })
	}
}
