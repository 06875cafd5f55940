package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/postgres"
	"intents.internal/core/rpc"
	"intents.internal/core/watch"
)

func (c Config) validateChains() error {
	return errors.Join(
		expect(c.ChainTick >= 100*time.Millisecond && c.ChainTick <= time.Minute, "CORE_CHAIN_TICK must be 100ms to 1m, not %s", c.ChainTick),
		expect(c.ChainGrace >= time.Minute && c.ChainGrace <= 168*time.Hour, "CORE_CHAIN_GRACE must be 1m to 168h, not %s", c.ChainGrace),
	)
}

// readWithProviders reads the settings and the RPC file that they name, and reports the faults of both at once. There are no providers
// without a file.
func readWithProviders(validate func(Config) error) (config Config, providers rpc.Providers, err error) {
	config, err = readConfig(func(c Config) error {
		var unreadable error
		if c.RPCFile != "" {
			if providers, unreadable = rpc.ReadFile(c.RPCFile); unreadable != nil {
				unreadable = fmt.Errorf("CORE_RPC_FILE: %w", unreadable)
			}
		}
		return errors.Join(validate(c), unreadable)
	})
	return config, providers, err
}

// newWatcher makes the client of the providers and the watcher of their chains. Without providers both have no chain.
func newWatcher(
	config Config, providers rpc.Providers, store *postgres.Store, live *postgres.LiveRegistry, log *slog.Logger, metrics prometheus.Registerer,
) (*rpc.Client, *watch.Watcher, error) {
	client, err := rpc.NewClient(providers, rpc.Options{Registry: metrics})
	if err != nil {
		return nil, nil, fmt.Errorf("CORE_RPC_FILE: %w", err)
	}
	for id := range providers {
		if _, known := live.Current().Chain(id); !known {
			log.Warn("chain of CORE_RPC_FILE is not registered and not watched; import it with core chains import", "chain", id.String())
		}
	}
	return client, watch.New(watch.Config{
		Store: store, Registry: live, Client: client, Log: log, Metrics: metrics, Tick: config.ChainTick, Grace: config.ChainGrace,
	}), nil
}
