package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/access"
	"intents.internal/core/account"
	"intents.internal/core/api"
	"intents.internal/core/console"
	"intents.internal/core/postgres"
	"intents.internal/pkg/listen"
	"intents.internal/pkg/telemetry"
)

const (
	// idleTimeout is longer than gateways keep idle connections, so that core never closes one that a gateway is about to
	// use.
	idleTimeout = time.Minute
	// expireEvery is how often deadlines are looked at.
	expireEvery = time.Second
	// pruneEvery is how often what has expired is removed.
	pruneEvery = time.Hour
	// redisBudget is how long somebody who signs in may wait for Redis.
	redisBudget = 250 * time.Millisecond
)

// serve runs `core serve` until ctx ends, then finishes what is in flight.
func serve(ctx context.Context, args []string) (err error) {
	if len(args) != 0 {
		return usageError("serve takes no further words; settings come from the environment")
	}
	config, err := readConfig()
	if err != nil {
		return err
	}
	if err := config.Validate(); err != nil {
		return err
	}
	log := telemetry.NewLogger(os.Stdout, "core")
	metrics := telemetry.NewRegistry()
	store, err := openStore(config, metrics)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := prepareDatabase(ctx, store, config, log); err != nil {
		return err
	}
	live, err := postgres.NewLiveRegistry(ctx, store)
	if err != nil {
		return err
	}
	shared, err := access.NewRedis(config.RedisURL.Reveal(), redisBudget)
	if err != nil {
		return fmt.Errorf("CORE_REDIS_URL %w", err)
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	metrics.MustRegister(collectors.NewDBStatsCollector(store.Pool(), "core"), access.RedisPool(shared))
	var ending drain
	ready := func(ctx context.Context) error { return errors.Join(ending.check(ctx), store.Ping(ctx)) }
	handler, err := newHandler(config, store, live, shared, ready, log, metrics)
	if err != nil {
		return err
	}
	operations := telemetry.Operations(metrics,
		telemetry.Check{Name: "postgres", Probe: store.Ping},
		telemetry.Check{Name: "redis", Probe: func(ctx context.Context) error { return shared.Ping(ctx).Err() }, Optional: true},
		telemetry.Check{Name: "serving", Probe: ending.check},
	)

	// Both listeners are open before either answers, so that whoever finds core ready can reach it.
	public, err := open(ctx, config.Listen)
	if err != nil {
		return err
	}
	private, err := open(ctx, config.OpsListen)
	if err != nil {
		return errors.Join(err, public.Close())
	}
	// The operations listener outlives the public one, so that probes see the drain.
	drained, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { live.Run(ctx, log); return nil })
	group.Go(func() error { prune(ctx, store, log); return nil })
	group.Go(func() error { expire(ctx, store, log); return nil })
	group.Go(func() error { census(ctx, store, log); return nil })
	group.Go(func() error {
		defer finish()
		return answer(ctx, public, ending.closing(handler), config.DrainDelay, config.ShutdownGrace, log)
	})
	group.Go(func() error { return answer(drained, private, operations, 0, time.Second, log) })
	group.Go(func() error { <-ctx.Done(); ending.announce(); return nil })
	log.Info("serving", "listen", config.Listen, "ops_listen", config.OpsListen)
	err = group.Wait()
	log.Info("stopped")
	return err
}

// newHandler puts together what answers gateways.
func newHandler(
	config Config, store *postgres.Store, live *postgres.LiveRegistry, shared redis.UniversalClient,
	ready func(context.Context) error, log *slog.Logger, metrics *prometheus.Registry,
) (http.Handler, error) {
	passwords, err := account.NewPasswords()
	if err != nil {
		return nil, err
	}
	service, err := access.New(access.Config{
		Store: store, Passwords: passwords, Redis: shared, Limits: config.limits(), SignUpOpen: config.SignUp == "open",
		Log: log, Metrics: metrics, PublicURL: config.PublicURL, OIDC: config.oidc(),
	})
	if err != nil {
		return nil, err
	}
	pages, err := console.New(console.Config{
		Access: service, Store: store, Registry: live, Cookie: access.NewCookie(config.PublicURL), PublicURL: config.PublicURL, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return api.New(api.Config{
		Store: store, Registry: live, Access: service, Log: log, Metrics: metrics,
		GatewaySecret: config.GatewaySecret, PublicURL: config.PublicURL, Ready: ready, Console: pages,
	})
}

func prepareDatabase(ctx context.Context, store *postgres.Store, config Config, log *slog.Logger) error {
	if config.MigrateOnStart {
		applied, err := store.Migrate(ctx)
		if err != nil {
			return err
		}
		log.Info("migrated", "applied", applied)
	}
	return store.CheckMigrated(ctx)
}

func open(ctx context.Context, address string) (net.Listener, error) {
	listener, err := listen.TCP(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s (is the port taken?): %w", address, err)
	}
	return listener, nil
}

// answer serves until ctx ends and for delay after it, then takes no more connections and waits for at most grace, so that
// requests in flight get their answers.
func answer(ctx context.Context, listener net.Listener, handler http.Handler, delay, grace time.Duration, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
		time.Sleep(delay)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return fmt.Errorf("finish the requests in flight on %s: %w", listener.Addr(), err)
	}
	return nil
}

// prune removes what has expired, now and then.
func prune(ctx context.Context, store *postgres.Store, log *slog.Logger) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		if err := store.Prune(ctx, time.Now()); err != nil && ctx.Err() == nil {
			log.Warn("pruning failed, trying again in an hour", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// expire marks the intents whose deadline has passed. It logs when that begins to fail and when it works again.
func expire(ctx context.Context, store *postgres.Store, log *slog.Logger) {
	ticker := time.NewTicker(expireEvery)
	defer ticker.Stop()
	failing := false
	for {
		expired, err := store.ExpireTransfers(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.Error("expiring transfers fails, trying again every second", "error", err)
		case err == nil && failing:
			log.Info("expiring transfers works again")
		}
		failing = err != nil
		if expired > 0 {
			continue // there may be more
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
