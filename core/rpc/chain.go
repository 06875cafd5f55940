// Package rpc calls the nodes of EVM chains over JSON-RPC.
//
// It owns the transport, the limits of providers, the order in which they are tried and the classification of their errors. The
// caller decides what responses mean for an intent, and when two providers must agree.
package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/outbound"
	"intents.internal/pkg/caip"
)

// Options of a Client; the zero value is usable.
type Options struct {
	// Timeout of a request; 0 means 10 seconds.
	Timeout time.Duration
	// Registry takes the metrics; nil means none.
	Registry prometheus.Registerer
	// Transport replaces the network in tests.
	Transport http.RoundTripper
}

// Client has the chains that have providers.
type Client struct {
	chains map[caip.ChainID]*Chain
	http   *http.Client
}

// NewClient makes the chains' providers. It sends nothing yet.
func NewClient(providers Providers, options Options) (*Client, error) {
	if options.Timeout <= 0 {
		options.Timeout = defaultTimeout
	}
	client := &Client{
		chains: map[caip.ChainID]*Chain{},
		http:   outbound.NewClient(outbound.Config{Timeout: options.Timeout, MaxBody: maxAnswer, Transport: options.Transport}),
	}
	metrics := newMetrics(options.Registry)
	for id, endpoints := range providers {
		number, ok := id.Number()
		if !ok || len(endpoints) == 0 {
			return nil, fmt.Errorf("make the providers of %s: no EVM chain, or no URL", id)
		}
		chain := &Chain{id: id}
		hosts := map[string]int{}
		for i, endpoint := range endpoints {
			p, err := newProvider(endpoint)
			if err != nil {
				return nil, fmt.Errorf("make provider %d of %s: %w", i, id, err)
			}
			p.chain, p.number, p.client, p.metrics = id.String(), number, client.http, metrics
			if hosts[p.host]++; hosts[p.host] > 1 {
				p.label = fmt.Sprintf("%s#%d", p.host, hosts[p.host])
			}
			metrics.registerAvailable(p)
			chain.providers = append(chain.providers, p)
		}
		client.chains[id] = chain
	}
	return client, nil
}

// Chain is false for a chain without providers.
func (c *Client) Chain(id caip.ChainID) (*Chain, bool) {
	chain, ok := c.chains[id]
	return chain, ok
}

// Chains are all chains that have providers, in no order.
func (c *Client) Chains() []*Chain {
	var chains []*Chain
	for _, chain := range c.chains {
		chains = append(chains, chain)
	}
	return chains
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Chain is the nodes of one chain. It is safe for concurrent use.
type Chain struct {
	id        caip.ChainID
	providers []*Provider

	mu sync.Mutex
	// preferred is the last provider that worked best.
	preferred *Provider
}

// ID is the chain's CAIP-2 id.
func (c *Chain) ID() caip.ChainID { return c.id }

// All returns the chain's configured providers, including those that are not in use.
func (c *Chain) All() []*Provider { return slices.Clone(c.providers) }

// Providers returns the providers to call, best first: the preferred one while it is healthy, other healthy ones in the
// configured order, those with recent failures, those that are paused. Providers of another chain are omitted.
func (c *Chain) Providers() []*Provider {
	c.mu.Lock()
	defer c.mu.Unlock()
	var healthy, failing, paused []*Provider
	for _, p := range c.providers {
		_, wrong, _ := p.verified.state()
		switch {
		case wrong:
		case p.health.paused() > 0:
			paused = append(paused, p)
		case p.health.failing():
			failing = append(failing, p)
		case p == c.preferred:
			healthy = slices.Insert(healthy, 0, p)
		default:
			healthy = append(healthy, p)
		}
	}
	if len(healthy) > 0 {
		c.preferred = healthy[0]
	}
	return slices.Concat(healthy, failing, paused)
}

// Other is Providers without those of the same host: another key of the same provider is not a second opinion. It also leaves out those that
// do not answer, until Verify has had an answer of them and, where others are left, they have rested: nobody waits for the dead.
func (c *Chain) Other(than *Provider) []*Provider {
	others := slices.DeleteFunc(c.Providers(), func(p *Provider) bool { return p.host == than.host || p.Problem() != "" || p.health.silent() })
	awake := slices.DeleteFunc(slices.Clone(others), func(p *Provider) bool { return p.health.rests() })
	if len(awake) == 0 {
		return others
	}
	return awake
}

// Usable is how many hosts have been verified and answer.
func (c *Chain) Usable() int {
	hosts := map[string]bool{}
	for _, p := range c.providers {
		if due, wrong, problem := p.verified.state(); !due && !wrong && problem == "" && !p.health.silent() {
			hosts[p.host] = true
		}
	}
	return len(hosts)
}

// HasOther reports whether the chain has a provider of another host, also one that is down or wrong at the moment.
func (c *Chain) HasOther(than *Provider) bool {
	return slices.ContainsFunc(c.providers, func(p *Provider) bool { return p.host != than.host })
}

// Healthy reports whether the provider is neither paused nor failing.
func (p *Provider) Healthy() bool { return p.health.paused() <= 0 && !p.health.failing() }

// Demote prefers the next healthy provider over one that lags behind the chain.
func (c *Chain) Demote(p *Provider) {
	for _, next := range c.Providers() {
		if next != p && next.Healthy() {
			c.mu.Lock()
			c.preferred = next
			c.mu.Unlock()
			return
		}
	}
}

// Verify checks the chain id of the providers when that is due: at first, hourly, after a failure, and each minute if it was
// wrong. The error names each provider that could not be verified.
func (c *Chain) Verify(ctx context.Context) error {
	var group sync.WaitGroup
	errs := make([]error, len(c.providers))
	for i, p := range c.providers {
		group.Go(func() {
			if due, wrong, problem := p.verified.state(); due {
				errs[i] = p.verify(ctx)
			} else if wrong {
				errs[i] = fmt.Errorf("%s: %w: %s", p.host, ErrWrongChain, problem)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
