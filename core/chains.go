package main

import (
	"errors"
	"fmt"
	"time"

	"intents.internal/core/rpc"
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
