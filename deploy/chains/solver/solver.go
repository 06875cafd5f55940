// Package solver is a demonstration of a solver: it pays the outputs of open orders and claims their inputs. It relays too: it sends the
// transactions of intents that their users only signed.
//
// It uses only what every solver can use: the public API's event feed and the chains' JSON-RPC. It quotes and fills by a table of prices,
// stores nothing on disk and mints the tokens that it pays, so it is for local chains only.
package solver

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// refundReference is the reference of intents whose orders are not filled, so that a refund can be tried.
const refundReference = "refund-me"

// fillDelay is the pause between seeing an order and filling it.
const fillDelay = 3 * time.Second

// Config configures a solver.
type Config struct {
	// Gateway is the URL of the public API, without a path.
	Gateway string
	// APIKey is sent as x-api-key. The event feed of its account has the references of orders.
	APIKey string
	// Chains are the chains whose orders are filled.
	Chains []Chain
	// Prices are those at which orders are quoted and filled; a token without one is neither.
	Prices []Price
	// Quotes is where requests for quotes are answered. Run closes it.
	Quotes net.Listener
	// Manners make it harder to please; by default it has none.
	Manners Manners
	Log     *slog.Logger
}

// Manners are what the framework's own solver does to orders and requests, each by itself. The zero value has none of them.
type Manners struct {
	// JudgesOnce means that an order which was refused is not tried again, and that one which was opened before the start is not looked at.
	JudgesOnce bool
	// MinExpiry is the least time from now to the deadline of an order that is filled.
	MinExpiry time.Duration
	// Finality is how many blocks deep an order's opening must be, its own included, before it is judged; 0 is 1.
	Finality uint64
	// FailsUnsupported means that a request with a token without a price is answered with 500 and a JSON error, and not with 422.
	FailsUnsupported bool
	// PriceMove is how much less is paid for an input than was quoted, in ten-thousandths, as if gas had risen since.
	PriceMove int64
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

// solver is the state that the loops of all chains share.
type solver struct {
	feed   *feed
	chains []*chain
	prices prices
	Manners
	log *slog.Logger
}

// Run fills orders until the context ends and then returns nil. It returns an error when quotes cannot be served any more, and retries a
// gateway or a chain that does not answer without limit.
func Run(ctx context.Context, config Config) (err error) {
	defer config.Quotes.Close()
	events, err := newFeed(config)
	if err != nil {
		return fmt.Errorf("configure the solver: %w", err)
	}
	s := &solver{feed: events, prices: newPrices(config.Prices), Manners: config.Manners, log: config.Log}
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
	loops.Go(func() { s.relay(ctx) })
	loops.Go(func() {
		if err = s.serveQuotes(ctx, config.Quotes); err != nil {
			cancel()
		}
	})
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
