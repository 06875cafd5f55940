package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intents.internal/gateway/catalog"
	"intents.internal/gateway/control"
	"intents.internal/gateway/edge"
	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/gateway/polls"
	"intents.internal/gateway/upstream"
	"intents.internal/gateway/usage"
	"intents.internal/pkg/clienttoken"
	"intents.internal/pkg/listen"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/topology"
	"intents.internal/pkg/tracing"
)

// Gateway is one replica: its listeners, its parts and their background goroutines.
type Gateway struct {
	// Edge serves clients.
	Edge *edge.Edge
	// Upstream sends requests to the cores.
	Upstream *upstream.Client
	// Metrics are those of /metrics; a process registers its own here before Run.
	Metrics *prometheus.Registry

	config     Config
	log        *slog.Logger
	public     net.Listener
	operations net.Listener

	core     *control.Client
	chains   *control.Chains
	catalog  *catalog.Catalog
	redis    redis.UniversalClient
	limiter  *limit.Limiter
	verifier *keys.Verifier
	polls    *polls.Polls
	usage    *usage.Recorder
	tracer   *tracing.Tracer
	ops      *http.Server
}

// New builds the parts of a config of ParseConfig and listens on both ports. Requests are logged to accessLog if config.AccessLog is set.
// It serves nothing before Run. The caller must call Close.
func New(ctx context.Context, config Config, log, accessLog *slog.Logger) (*Gateway, error) {
	if !config.AccessLog {
		accessLog = nil
	}
	urls, err := config.cores()
	if err != nil {
		return nil, err
	}
	g := &Gateway{config: config, log: log}
	g.redis, err = limit.NewRedis(config.RedisMode, config.RedisURL.Reveal(), config.LimitBudget)
	if err != nil {
		return nil, fmt.Errorf("GATEWAY_REDIS_URL %w", err)
	}
	registry := telemetry.NewRegistry()
	g.Metrics = registry
	if g.tracer, err = tracing.New(config.tracing(), log, registry); err != nil {
		return nil, err
	}
	registry.MustRegister(topology.Pool("gateway", g.redis))
	g.Upstream = upstream.New(upstream.Options{
		URLs:     urls,
		Secret:   config.CoreSecret,
		Timeout:  config.CoreTimeout,
		MaxConns: config.CoreMaxConns,
		Log:      log,
		Metrics:  registry,
	})
	g.core = control.New(g.Upstream)
	g.chains = control.NewChains(g.core, config.ChainsRefresh, log)
	g.catalog = catalog.New(g.core)
	g.limiter = limit.New(limit.Options{
		Redis:    g.redis,
		Budget:   config.LimitBudget,
		Fallback: config.LimitFallback,
		Capacity: config.LimitMemory,
		Log:      log,
		Metrics:  registry,
	})
	g.verifier = keys.New(keys.Options{
		Core:          g.core,
		Capacity:      config.KeyCache,
		TTL:           config.KeyTTL,
		UnknownTTL:    config.UnknownKeyTTL,
		LookUpTimeout: config.KeyLookUpTimeout,
		LookUps:       config.KeyLookUps,
		Log:           log,
		Metrics:       registry,
	})
	g.polls = polls.New(polls.Options{Core: g.core, Max: config.MaxPolls, Log: log, Metrics: registry})
	g.usage = usage.New(usage.Options{
		Report:   g.core.ReportUsage,
		Interval: config.UsageInterval,
		Backlog:  config.UsageBacklog,
		Log:      log,
		Metrics:  registry,
	})
	g.Edge = edge.New(edge.Options{
		Keys:           g.verifier,
		Limiter:        g.limiter,
		Chains:         g.chains,
		Catalog:        g.catalog,
		Core:           g.core,
		Tokens:         clienttoken.NewMinter(config.CoreSecret),
		Upstream:       g.Upstream,
		Polls:          g.polls,
		Tracer:         g.tracer,
		Usage:          g.usage,
		CoreSilence:    config.CoreSilence,
		TrustedProxies: config.TrustedProxies,
		Server:         config.server(),
		AccessLog:      accessLog,
		Log:            log,
		Metrics:        registry,
	})
	g.ops = g.newOperations()
	if err := g.listen(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// newOperations creates the server of the operations listener.
func (g *Gateway) newOperations() *http.Server {
	return &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: telemetry.Operations(g.Metrics,
			telemetry.Check{Name: "draining", Probe: g.Edge.Draining},
			telemetry.Check{Name: "chains", Probe: g.chains.Ready},
			telemetry.Check{Name: "key_changes", Probe: g.verifier.Ready},
			telemetry.Check{Name: "redis", Probe: g.redisReady, Optional: g.config.LimitFallback != limit.Closed},
			telemetry.Check{Name: "redis_eviction", Probe: func(ctx context.Context) error { return topology.CheckEviction(ctx, g.redis) }, Optional: true}),
	}
}

// redisReady says why while the limiter does without Redis.
func (g *Gateway) redisReady(ctx context.Context) error {
	err := g.limiter.Ready(ctx)
	if err == nil {
		return nil
	}
	return errors.Join(err, topology.Serving(ctx, g.redis))
}

func (c Config) server() edge.ServerOptions {
	return edge.ServerOptions{
		ReadTimeout:      c.ReadTimeout,
		WriteTimeout:     c.WriteTimeout,
		StreamTimeout:    c.StreamTimeout,
		StreamRate:       c.StreamRate,
		IdleTimeout:      c.IdleTimeout,
		MaxConns:         c.MaxConns,
		MaxConnsPerIP:    c.MaxConnsPerIP,
		MaxLongLists:     max(1, c.CoreMaxConns*3/4),
		MaxQuoteRequests: max(1, c.CoreMaxConns/4),
		MaxHeaderBytes:   c.MaxHeaderBytes,
		MaxBodyBytes:     c.MaxBodyBytes,
	}
}

func (g *Gateway) listen(ctx context.Context) (err error) {
	if g.public, err = listen.TCP(ctx, g.config.Listen); err != nil {
		return fmt.Errorf("GATEWAY_LISTEN: %w", err)
	}
	if g.operations, err = listen.TCP(ctx, g.config.OpsListen); err != nil {
		return fmt.Errorf("GATEWAY_OPS_LISTEN: %w", err)
	}
	return nil
}

// Address is the clients' listener.
func (g *Gateway) Address() string { return g.public.Addr().String() }

// OperationsAddress is the operators' listener.
func (g *Gateway) OperationsAddress() string { return g.operations.Addr().String() }

// Run serves until ctx ends, then drains and returns nil; it returns an error if a listener fails.
func (g *Gateway) Run(ctx context.Context) error {
	// The background goroutines outlast ctx, because requests are still served while the gateway drains.
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer stopBackground()
	tasks.Go(func() { g.Upstream.Run(background) })
	tasks.Go(func() { g.chains.Run(background) })
	tasks.Go(func() { g.verifier.Run(background) })
	tasks.Go(func() { g.polls.Run(background) })
	tasks.Go(func() { topology.WarnOfEviction(background, g.redis, g.log) })
	// Usage is counted until the last request has ended.
	counting, stopCounting := context.WithCancel(context.WithoutCancel(ctx))
	counted := make(chan struct{})
	tasks.Go(func() { defer close(counted); g.usage.Run(counting) })
	reportLast := func() { stopCounting(); <-counted }

	failed := make(chan error, 2)
	tasks.Go(func() { failed <- g.Edge.Serve(g.public) })
	tasks.Go(func() { failed <- g.serveOperations() })
	g.log.Info("gateway started", "listen", g.Address(), "ops_listen", g.OperationsAddress(), "cores", g.config.CoreURLs)
	select {
	case <-ctx.Done():
		return g.drain(reportLast)
	case err := <-failed:
		return errors.Join(err, g.drain(reportLast))
	}
}

func (g *Gateway) serveOperations() error {
	if err := g.ops.Serve(g.operations); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operators on %s: %w", g.OperationsAddress(), err)
	}
	return nil
}

// drain announces the drain, waits until load balancers have seen it, waits for the requests in flight and reports their usage.
// The operations listener closes last, so that operators can observe the drain.
func (g *Gateway) drain(reportLast func()) error {
	g.log.Info("gateway draining", "delay", g.config.DrainDelay.String())
	g.Edge.AnnounceDrain()
	time.Sleep(g.config.DrainDelay)
	ctx, cancel := context.WithTimeout(context.Background(), g.config.DrainTimeout)
	defer cancel()
	err := g.Edge.Drain(ctx)
	reportLast()
	err = errors.Join(err, g.tracer.Shutdown(ctx))
	g.log.Info("gateway stopped")
	return errors.Join(err, g.ops.Close())
}

// Close frees the resources of New. Run must have returned.
func (g *Gateway) Close() error {
	var errs []error
	for _, listener := range []net.Listener{g.public, g.operations} {
		if listener == nil {
			continue
		}
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	g.catalog.Close()
	g.verifier.Close()
	g.limiter.Close()
	g.Upstream.Close()
	traced := g.tracer.Shutdown(context.Background()) // in case Run was not called
	return errors.Join(append(errs, traced, g.redis.Close())...)
}
