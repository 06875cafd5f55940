package main

import (
	"context"
	"log/slog"
	"net"

	"intents.internal/deploy/chains/solver"
)

// runSolver quotes and fills orders of both chains until ctx ends.
func runSolver(ctx context.Context, config config, quotes net.Listener, chains []*chain, log *slog.Logger) error {
	c := solver.Config{Gateway: config.Gateway, APIKey: config.APIKey, Quotes: quotes, Prices: prices(), Manners: config.Manners, Log: log.With("part", "solver")}
	for _, chain := range chains {
		c.Chains = append(c.Chains, solver.Chain{
			ID: chain.name(), RPC: chain.url(), InputSettler: inputSettler, OutputSettler: outputSettler, Oracle: oracle, Key: solverKey,
		})
	}
	return solver.Run(ctx, c)
}

// prices are of the native token and of the test tokens but tFEE, which takes a fee on transfers and cannot be an order's input.
func prices() []solver.Price {
	const dollar, euro, ether = 100, 110, 300_000
	list := []solver.Price{{Decimals: 18, Cents: ether}}
	for _, t := range tokens {
		switch t.symbol {
		case "tUSDC", "tUSDT":
			list = append(list, solver.Price{Token: t.address, Decimals: t.decimals, Cents: dollar})
		case "tEURC":
			list = append(list, solver.Price{Token: t.address, Decimals: t.decimals, Cents: euro})
		case "tWETH":
			list = append(list, solver.Price{Token: t.address, Decimals: t.decimals, Cents: ether})
		}
	}
	return list
}
