package main

import (
	"context"
	"log/slog"

	"intents.internal/deploy/chains/solver"
)

// runSolver fills orders of both chains until ctx ends.
func runSolver(ctx context.Context, config config, chains []*chain, log *slog.Logger) error {
	c := solver.Config{Gateway: config.Gateway, APIKey: config.APIKey, Log: log.With("part", "solver")}
	for _, chain := range chains {
		c.Chains = append(c.Chains, solver.Chain{
			ID: chain.name(), RPC: chain.url(), InputSettler: inputSettler, OutputSettler: outputSettler, Oracle: oracle, Key: solverKey,
		})
	}
	return solver.Run(ctx, c)
}
