package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
)

const (
	// chainsPath is where core lists the chains, for clients too.
	chainsPath = "/v2/chains"
	// chainsTimeout bounds one load of the chains.
	chainsTimeout = 2 * time.Second
)

// Chains is a copy of core's table of chain environments, kept fresh by Run. Where core cannot be asked the last good
// copy stays: a chain does not change its environment, so an old copy can only lack new chains, and core checks again.
type Chains struct {
	core  *Client
	every time.Duration
	log   *slog.Logger
	table atomic.Pointer[map[caip.ChainID]network.Environment]
}

// NewChains makes a table that Run fills and then refreshes at this interval.
func NewChains(core *Client, every time.Duration, log *slog.Logger) *Chains {
	return &Chains{core: core, every: every, log: log}
}

// Ready is nil once there is a table; it is a readiness check.
func (c *Chains) Ready(context.Context) error {
	if c.table.Load() == nil {
		return errors.New("core's chains have not been loaded yet")
	}
	return nil
}

// Environment says which keys may use the chain; known is false for a chain core does not list.
func (c *Chains) Environment(chain caip.ChainID) (env network.Environment, known bool) {
	table := c.table.Load()
	if table == nil {
		return "", false
	}
	env, known = (*table)[chain]
	return env, known
}

// Run loads the table and keeps it fresh until ctx ends.
func (c *Chains) Run(ctx context.Context) {
	var etag string
	failing := false
	for ctx.Err() == nil {
		newETag, err := c.load(ctx, etag)
		wait := c.every
		switch {
		case err == nil:
			etag = newETag
		case ctx.Err() != nil:
			return
		case c.table.Load() == nil:
			wait = min(wait, 100*time.Millisecond) // nothing can be served before the first load
		}
		if (err != nil) != failing {
			failing = err != nil
			c.report(ctx, err)
		}
		sleep(ctx, wait)
	}
}

// report logs the first failure of a row and its end, not every poll between.
func (c *Chains) report(ctx context.Context, err error) {
	if err != nil {
		c.log.WarnContext(ctx, "chain environments not refreshed", "error", err)
		return
	}
	c.log.InfoContext(ctx, "chain environments refreshed again")
}

func (c *Chains) load(ctx context.Context, etag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, chainsTimeout)
	defer cancel()
	document, err := c.core.Document(ctx, chainsPath, "", etag)
	if errors.Is(err, ErrNotModified) {
		return etag, nil
	}
	if err != nil {
		return "", err
	}
	var list []struct {
		ChainID, Environment string
	}
	if err := json.Unmarshal(document.Body, &list); err != nil {
		return "", fmt.Errorf("read the chains: %w", err)
	}
	table := make(map[caip.ChainID]network.Environment, len(list))
	for _, item := range list {
		chain, err := caip.ParseChainID(item.ChainID)
		if err != nil {
			return "", fmt.Errorf("read the chains: %w", err)
		}
		if table[chain], err = network.Parse(item.Environment); err != nil {
			return "", fmt.Errorf("read the chains: %w", err)
		}
	}
	c.table.Store(&table)
	return document.Header.Get("ETag"), nil
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
