package main

import (
	"context"
	"log/slog"
	"time"

	"intents.internal/deploy/chains/solver"
)

// fillDelay is the pause before the solver fills an order, so that its status can be watched.
const fillDelay = 3 * time.Second

// runSolver fills orders that the API of config.Gateway knows until ctx ends.
func runSolver(ctx context.Context, config config, chains []*chain, log *slog.Logger) error {
	settings := solver.Config{Gateway: config.Gateway, APIKey: config.APIKey, Delay: fillDelay, Log: log}
	for _, c := range chains {
		settings.Chains = append(settings.Chains, solver.Chain{ID: c.name(), RPC: c.url(), Settler: settlerAddress, Key: solverKey})
	}
	return solver.Run(ctx, settings)
}
