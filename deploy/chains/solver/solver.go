// Package solver is a demonstration of a solver: it pays the outputs of open orders and claims their inputs.
//
// It uses only what every solver can use: the public API's event feed and the chains' JSON-RPC. It quotes and fills by a table of prices,
// stores nothing on disk and mints the tokens that it pays, so it is for local chains only.
package solver

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// RefundReference is the reference of intents whose orders are not filled, so that a refund can be tried.
const RefundReference = "refund-me"

// DefaultDelay is the pause before a fill.
const DefaultDelay = 3 * time.Second

// Config configures a solver.
type Config struct {
	// Gateway is the URL of the public API, without a path.
	Gateway string
	// APIKey is sent as x-api-key. The event feed of its account has the references of orders.
	APIKey string
	// Chains are the chains whose orders are filled, at least one.
	Chains []Chain
	// Prices are those at which orders are quoted and filled. Without any every order is filled and none is quoted.
	Prices []Price
	// Quotes is where requests for quotes are answered; nil for no quotes. Run closes it.
	Quotes net.Listener
	// Delay is the pause between seeing an order and filling it; DefaultDelay if it is zero.
	Delay time.Duration
	// Log is slog.Default() if it is nil.
	Log *slog.Logger
}

// Chain is a chain with the contracts of a deployment.
type Chain struct {
	// ID is the CAIP-2 id, of the namespace eip155.
	ID string
	// RPC is the URL of a node.
	RPC string
	// InputSettler is the only one whose orders are filled, OutputSettler and Oracle are the only ones that they may name.
	InputSettler, OutputSettler, Oracle common.Address
	// Key is the key of the account that fills. It pays with its native asset.
	Key *ecdsa.PrivateKey
}

// validate reports all faults at once.
func (c Config) validate() error {
	var faults []error
	if c.Gateway == "" {
		faults = append(faults, errors.New("the gateway's URL is missing"))
	}
	if c.APIKey == "" {
		faults = append(faults, errors.New("the API key is missing"))
	}
	if len(c.Chains) == 0 {
		faults = append(faults, errors.New("there is no chain"))
	}
	if c.Delay < 0 {
		faults = append(faults, fmt.Errorf("the delay %s is negative", c.Delay))
	}
	for _, price := range c.Prices {
		if price.Cents < 1 || price.Decimals > mostDecimals {
			faults = append(faults, fmt.Errorf("the price of %s is less than a cent, or it has more than %d decimals", price.Token, mostDecimals))
		}
	}
	for _, chain := range c.Chains {
		if _, err := parseChainID(chain.ID); err != nil {
			faults = append(faults, err)
		}
		if chain.Key == nil {
			faults = append(faults, fmt.Errorf("the key of %s is missing", chain.ID))
		}
	}
	return errors.Join(faults...)
}

// solver is the state that the loops of all chains share.
type solver struct {
	feed   *feed
	chains []*chain
	prices prices
	delay  time.Duration
	log    *slog.Logger
}

// Run fills orders until the context ends and then returns nil. It returns an error at once if the configuration is invalid, and one
// when quotes cannot be served any more. It retries a gateway or a chain that does not answer without limit.
func Run(ctx context.Context, config Config) (err error) {
	if config.Quotes != nil {
		defer config.Quotes.Close()
	}
	if err := config.validate(); err != nil {
		return fmt.Errorf("configure the solver: %w", err)
	}
	if config.Delay == 0 {
		config.Delay = DefaultDelay
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	events, err := newFeed(config)
	if err != nil {
		return fmt.Errorf("configure the solver: %w", err)
	}
	s := &solver{feed: events, prices: newPrices(config.Prices), delay: config.Delay, log: config.Log}
	for _, c := range config.Chains {
		connected, err := newChain(ctx, c)
		if err != nil {
			return fmt.Errorf("configure the solver: %w", err)
		}
		defer connected.client.Close()
		s.chains = append(s.chains, connected)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var loops sync.WaitGroup
	loops.Go(func() { s.feed.run(ctx) })
	if config.Quotes != nil {
		loops.Go(func() {
			if err = s.serveQuotes(ctx, config.Quotes); err != nil {
				cancel()
			}
		})
	}
	for _, c := range s.chains {
		loops.Go(func() { s.follow(ctx, c) })
	}
	loops.Wait()
	return err
}

const (
	firstBackOff = 500 * time.Millisecond
	maxBackOff   = 15 * time.Second
)

// health logs when something stops working and when it works again.
type health struct {
	log     *slog.Logger
	failing bool
	backOff time.Duration
}

// report records the error of an attempt, nil for none, and returns the pause before the next attempt: longer after each failure,
// otherwise the given pause.
func (h *health) report(ctx context.Context, err error, pause time.Duration) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	if err == nil {
		if h.failing {
			h.log.Info("works again")
		}
		h.failing, h.backOff = false, 0
		return pause
	}
	if !h.failing {
		h.log.Warn("does not work, is tried again", "error", err)
	}
	h.failing = true
	h.backOff = min(max(2*h.backOff, firstBackOff), maxBackOff)
	return h.backOff
}

// sleep waits, and reports false if the context has ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
