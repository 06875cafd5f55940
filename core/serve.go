package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"intents.internal/core/access"
	"intents.internal/core/account"
	"intents.internal/core/api"
	"intents.internal/core/console"
	"intents.internal/core/postgres"
	"intents.internal/pkg/listen"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/topology"
	"intents.internal/pkg/tracing"
)

const (
	// idleTimeout is longer than gateways keep idle connections, so that core never closes one that a gateway is about to
	// use.
	idleTimeout = time.Minute
	// expireEvery is how often deadlines are looked at.
	expireEvery = time.Second
	// redisBudget is how long somebody who signs in may wait for Redis.
	redisBudget = 250 * time.Millisecond
	// logBytes bounds the lines that wait while standard output is not read.
	logBytes = 2 << 20
)

// serve runs `core serve` until ctx ends, then finishes what is in flight.
func serve(ctx context.Context, args []string) error {
	if len(args) != 0 {
		return usageError("serve takes no further words; settings come from the environment")
	}
	metrics := telemetry.NewRegistry()
	log, closeLog := newLog(metrics)
	return errors.Join(serveUntil(ctx, log, metrics), closeLog())
}

func serveUntil(ctx context.Context, log *slog.Logger, metrics *prometheus.Registry) (err error) {
	config, err := readConfig(Config.Validate)
	if err != nil {
		return err
	}
	collectLess()
	tracer, err := tracing.New(config.tracing(), log, metrics)
	if err != nil {
		return err
	}
	// After the store, whose last commits have spans as well.
	defer func() { err = errors.Join(err, tracer.Shutdown(context.WithoutCancel(ctx))) }()
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
	shared, err := access.NewRedis(config.RedisMode, config.RedisURL.Reveal(), redisBudget)
	if err != nil {
		return fmt.Errorf("CORE_REDIS_URL %w", err)
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	if tracer != nil {
		shared.AddHook(access.TraceRedis())
	}
	metrics.MustRegister(topology.Pool("core", shared))
	var ending drain
	ready := func(ctx context.Context) error { return errors.Join(ending.check(ctx), store.Ping(ctx)) }
	oidc := config.oidc()
	handler, err := newHandler(config, store, live, shared, oidc, ready, tracer, log, metrics)
	if err != nil {
		return err
	}
	operations := telemetry.Operations(metrics, append(replicaChecks(store),
		telemetry.Check{Name: "postgres", Probe: store.Ping},
		telemetry.Check{Name: "redis", Probe: func(ctx context.Context) error { return topology.Serving(ctx, shared) }, Optional: true},
		telemetry.Check{Name: "serving", Probe: ending.check},
	)...)

	public, private, err := listenBoth(ctx, config)
	if err != nil {
		return err
	}
	// The operations listener outlives the public one, so that probes see the drain.
	drained, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range chores(ctx, store, live, config.retention(), log) {
		group.Go(func() error { run(); return nil })
	}
	if oidc != nil {
		group.Go(func() error { oidc.Discover(ctx, log); return nil })
	}
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

// chores are what core does besides answering, each until ctx ends.
func chores(
	ctx context.Context, store *postgres.Store, live *postgres.LiveRegistry, keep postgres.Retention, log *slog.Logger,
) []func() {
	return []func(){
		func() { live.Run(ctx, log) },
		func() { store.FollowReplica(ctx, log) },
		func() { prune(ctx, store, keep, log) },
		func() { expire(ctx, store, log) },
		func() { census(ctx, store, log) },
	}
}

// newHandler puts together what answers gateways.
func newHandler(
	config Config, store *postgres.Store, live *postgres.LiveRegistry, shared redis.UniversalClient, oidc *access.OIDC,
	ready func(context.Context) error, tracer *tracing.Tracer, log *slog.Logger, metrics *prometheus.Registry,
) (http.Handler, error) {
	passwords, err := account.NewPasswords()
	if err != nil {
		return nil, err
	}
	service, err := access.New(access.Config{
		Store: store, Passwords: passwords, Redis: shared, Limits: config.limits(), SignUpOpen: config.SignUp == "open",
		Log: log, Metrics: metrics, PublicURL: config.PublicURL, OIDC: oidc,
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
		Secrets: api.NewSecrets(config.GatewaySecret, config.GatewaySecretPrevious), PublicURL: config.PublicURL, Ready: ready,
		Console: pages, Tracer: tracer, AccessLog: config.AccessLog,
	})
}

// newLog logs to standard output, without waiting for its reader, until it is closed.
func newLog(metrics prometheus.Registerer) (log *slog.Logger, closeLog func() error) {
	output := telemetry.NewLogWriter(os.Stdout, telemetry.LogWriterOptions{Service: "core", MaxBytes: logBytes})
	metrics.MustRegister(output.Dropped("intents_core_log_dropped_total"))
	return telemetry.NewLogger(output, "core"), output.Close
}

func prepareDatabase(ctx context.Context, store *postgres.Store, config Config, log *slog.Logger) error {
	if config.MigrateOnStart {
		applied, err := store.Migrate(ctx)
		if err != nil {
			return err
		}
		log.Info("migrated", "applied", applied)
	}
	if err := store.CheckMigrated(ctx); err != nil {
		return err
	}
	missing, err := store.LimitsNotInForce(ctx)
	if err == nil && len(missing) > 0 {
		log.Warn("time limits are not in force in the database, as behind a pooler that ignores them; "+
			"have Postgres set them for this role, as deploy/README.md says", "limits", missing)
	}
	return err
}

// replicaChecks has operators see the replica, where there is one.
func replicaChecks(store *postgres.Store) []telemetry.Check {
	if !store.HasReplica() {
		return nil
	}
	return []telemetry.Check{{Name: "replica", Probe: store.CheckReplica, Optional: true}}
}

// listenBoth opens both listeners before either answers, so that whoever finds core ready can reach it.
func listenBoth(ctx context.Context, config Config) (public, private net.Listener, err error) {
	if public, err = open(ctx, config.Listen); err != nil {
		return nil, nil, err
	}
	if private, err = open(ctx, config.OpsListen); err != nil {
		return nil, nil, errors.Join(err, public.Close())
	}
	return public, private, nil
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

// collectLess lets four times as much garbage lie about as there is memory in use, unless GOGC says otherwise. Little is in use,
// so that lists would have it collected many times a second, and whoever comes meanwhile would wait for that.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
