package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"intents.internal/pkg/background"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
)

const (
	// chainsPath is the public list of chains.
	chainsPath = "/v2/chains"
	// chainsTimeout bounds one load of the chains.
	chainsTimeout = 2 * time.Second
	// chainsRetry is the pause after a failed load; the gateway is not ready before the first that succeeds.
	chainsRetry = 100 * time.Millisecond
	// chainsLogEvery is the minimum time between two log lines about failed loads.
	chainsLogEvery = time.Minute
)

// Chains is a copy of core's chain environments that Run refreshes. While core does not respond, the last copy is used: a chain
// never changes its environment, so an old copy only lacks new chains, which core checks.
type Chains struct {
	core     *Client
	interval time.Duration
	log      *slog.Logger
	logs     telemetry.Sampler
	table    atomic.Pointer[map[caip.ChainID]network.Environment]
}

// NewChains returns a table that Run loads and then refreshes at this interval.
func NewChains(core *Client, every time.Duration, log *slog.Logger) *Chains {
	return &Chains{core: core, interval: every, log: log, logs: telemetry.Sampler{Every: chainsLogEvery}}
}

// Ready is a readiness check that passes once the table is loaded.
func (c *Chains) Ready(context.Context) error {
	if c.table.Load() == nil {
		return errors.New("core's chains have not been loaded yet")
	}
	return nil
}

// Environment returns the environment of a chain; known is false for a chain that core does not list.
func (c *Chains) Environment(chain caip.ChainID) (env network.Environment, known bool) {
	table := c.table.Load()
	if table == nil {
		return "", false
	}
	env, known = (*table)[chain]
	return env, known
}

// Run loads the table and refreshes it until ctx ends.
func (c *Chains) Run(ctx context.Context) {
	var etag string
	job := background.Job{Every: c.interval, Retry: chainsRetry, Report: c.report}
	background.Repeat(ctx, c.log, job, func() (more bool, err error) {
		etag, err = c.load(ctx, etag)
		return false, err
	})
}

// report logs the first of consecutive failures, then one every chainsLogEvery, and the recovery.
func (c *Chains) report(ctx context.Context, err error) {
	if err == nil {
		c.log.InfoContext(ctx, "chain environments refreshed again")
	} else if suppressed, due := c.logs.Due(); due {
		c.log.WarnContext(ctx, "chain environments not refreshed", "error", err, "suppressed", suppressed)
	}
}

// load returns the ETag of the table that it loads, after an error that of the table before.
func (c *Chains) load(ctx context.Context, etag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, chainsTimeout)
	defer cancel()
	document, err := c.core.Document(ctx, chainsPath, "", etag)
	if errors.Is(err, ErrNotModified) {
		return etag, nil
	}
	if err != nil {
		return etag, err
	}
	var list []struct {
		ChainID, Environment string
	}
	if err := json.Unmarshal(document.Body, &list); err != nil {
		return etag, fmt.Errorf("read the chains: %w", err)
	}
	table := make(map[caip.ChainID]network.Environment, len(list))
	for _, item := range list {
		chain, err := caip.ParseChainID(item.ChainID)
		if err != nil {
			return etag, fmt.Errorf("read the chains: %w", err)
		}
		if table[chain], err = network.Parse(item.Environment); err != nil {
			return etag, fmt.Errorf("read the chains: %w", err)
		}
	}
	c.table.Store(&table)
	return document.Header.Get("ETag"), nil
}
