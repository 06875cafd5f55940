package command

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

	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/mail"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/provider"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/rpc"
	"intents.internal/core/screening"
	"intents.internal/core/web"
	"intents.internal/core/web/route"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/listen"
	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/topology"
	"intents.internal/pkg/tracing"
)

const (
	// idleTimeout is longer than the 20 s of gateways and the 60 s of common proxies, so that core never closes a connection that one of
	// them is about to use.
	idleTimeout = 75 * time.Second
	// redisBudget bounds the wait of a sign-in for Redis.
	redisBudget = 250 * time.Millisecond
)

// serve runs `core serve` until ctx ends, then finishes what is in flight.
func serve(ctx context.Context, args []string) error {
	if len(args) != 0 {
		return usageError("serve takes no further words; settings come from the environment")
	}
	metrics := telemetry.NewRegistry()
	log, closeLog := newLog(metrics)
	accessLog, closeAccess := newAccessLog(metrics)
	return errors.Join(serveUntil(ctx, log, accessLog, metrics), closeAccess(), closeLog())
}

func serveUntil(ctx context.Context, log, accessLog *slog.Logger, metrics *prometheus.Registry) (err error) {
	config, providers, quoteProviders, err := readToServe()
	if err != nil {
		return err
	}
	if !config.AccessLog {
		accessLog = nil
	}
	setGCPercent()
	tracer, err := tracing.New(config.tracing(), log, metrics)
	if err != nil {
		return err
	}
	// It follows the store, whose last commits have spans as well.
	defer func() { err = errors.Join(err, tracer.Shutdown(context.WithoutCancel(ctx))) }()

	store, live, err := openDatabase(ctx, config, log, metrics)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	screen, err := openScreening(ctx, config, store, log, metrics)
	if err != nil {
		return err
	}
	chains, err := newChains(config, providers, store, live, screen, log, metrics)
	if err != nil {
		return err
	}
	defer chains.client.Close()
	limits, err := openRedis(config, metrics)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limits.Close()) }()
	oidc := config.oidc()
	identities, outbox, err := newIdentity(config, store, limits, oidc, chains.client, screen, log, metrics)
	if err != nil {
		return err
	}
	rules, err := config.webhooks()
	if err != nil {
		return err
	}
	intents := intents.New(intents.Config{
		Store: store.Intents, Registry: live, Chains: chains.client, Screening: screen, Created: chains.activity.Created, Reported: chains.watcher.Reported,
	})
	quotes, asked, err := newQuotes(config, quoteProviders, store, live, intents, log, metrics)
	if err != nil {
		return err
	}
	defer asked.Close()
	hooks := webhooks.NewService(store.Webhooks, rules, identities)
	var draining drain
	memory, follower := topology.NewMemory("core", metrics), feed.NewFollower(store.Feed)
	handler, err := newHandler(web.Config{
		Identities: store.Identities, Transfers: store.Intents, Events: store.Feed, Registry: live, Feed: follower,
		Now: store.Now, Identity: identities, Intents: intents, Quotes: quotes, Webhooks: hooks,
		Secrets: route.NewSecrets(config.GatewaySecret, config.GatewaySecretPrevious), PublicURL: config.PublicURL,
		Log: log, AccessLog: accessLog, Metrics: metrics, Tracer: tracer,
		Ready: func(ctx context.Context) error { return errors.Join(draining.check(ctx), store.CheckReadWrite(ctx)) },
	})
	if err != nil {
		return err
	}
	operations := telemetry.Operations(metrics, checks(store, limits, &draining)...)
	return runServers(ctx, config, draining.closing(handler), operations, log, func(ctx context.Context, group *errgroup.Group) {
		startWorkers(ctx, group, config, store, live, follower, oidc, quotes, log)
		group.Go(func() error { readState(ctx, store, limits, memory, log); return nil })
		startOutbox(ctx, group, outbox, identities, hooks)
		startWebhooks(ctx, group, config, rules, store, follower, outbox, log, metrics)
		chains.start(ctx, group, config)
		startScreening(ctx, group, screen)
		group.Go(func() error { topology.WarnOfEviction(ctx, limits, log); return nil })
		group.Go(func() error { <-ctx.Done(); draining.announce(); follower.Drain(); return nil })
	})
}

// newHandler is the handler of all routes and of the console.
func newHandler(config web.Config) (handler http.Handler, err error) {
	if config.Console, err = config.NewConsole(); err != nil {
		return nil, err
	}
	return web.New(config)
}

// readToServe reads the settings and both files of providers, and reports the faults of all at once.
func readToServe() (config Config, nodes rpc.Providers, quotes []provider.Endpoint, err error) {
	config, nodes, err = readWithProviders(func(c Config, f *settings.Faults) {
		c.check(f)
		quotes = c.readQuoteProviders(f)
	})
	return config, nodes, quotes, err
}

// runServers serves gateways and operators, and starts the workers, until ctx ends and all of them have.
func runServers(
	ctx context.Context, config Config, handler, operations http.Handler, log *slog.Logger, start func(context.Context, *errgroup.Group),
) error {
	public, private, err := listenBoth(ctx, config)
	if err != nil {
		return err
	}
	// The operations listener outlives the public one, so that probes see the drain.
	drained, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	group, ctx := errgroup.WithContext(ctx)
	start(ctx, group)
	group.Go(func() error {
		defer finish()
		return serveHTTP(ctx, public, handler, config.DrainDelay, config.ShutdownGrace, log)
	})
	group.Go(func() error { return serveHTTP(drained, private, operations, 0, time.Second, log) })
	log.Info("serving", "listen", config.Listen, "ops_listen", config.OpsListen)
	err = group.Wait()
	log.Info("stopped")
	return err
}

// startWorkers starts what core does besides serving requests. Each worker runs until ctx ends.
func startWorkers(
	ctx context.Context, group *errgroup.Group, config Config, store *rooms.Rooms, live *registry.LiveRegistry,
	follower *feed.Follower, oidc *identity.OIDC, offers *quotes.Service, log *slog.Logger,
) {
	start := func(worker func()) { group.Go(func() error { worker(); return nil }) }
	start(func() { live.Run(ctx, log) })
	start(func() { store.FollowReplica(ctx, log) })
	start(func() { prune(ctx, store.Retention, config.retention(), log) })
	start(func() { expire(ctx, store.Intents, log) })
	start(func() { eraseSignatures(ctx, store.Intents, log) })
	start(func() { writeRefundableEvents(ctx, store.Intents, log) })
	start(func() { follow(ctx, follower, log) })
	start(func() { followSubmissions(ctx, offers, log) })
	if oidc != nil {
		start(func() { oidc.Discover(ctx, log) })
	}
}

// openRedis makes the client for the limits.
func openRedis(config Config, metrics prometheus.Registerer) (redis.UniversalClient, error) {
	client, err := identity.NewRedis(config.RedisMode, config.RedisURL.Reveal(), redisBudget)
	if err != nil {
		return nil, fmt.Errorf("CORE_REDIS_URL %w", err)
	}
	metrics.MustRegister(topology.Pool("core", client))
	return client, nil
}

// newIdentity returns the outbox too, nil where no mail is sent.
func newIdentity(
	config Config, store *rooms.Rooms, limits redis.UniversalClient, oidc *identity.OIDC, nodes *rpc.Client, screen *screening.Screen,
	log *slog.Logger, metrics prometheus.Registerer,
) (*identity.Service, *mail.Outbox, error) {
	outbox, err := newOutbox(config, store, log, metrics)
	if err != nil {
		return nil, nil, err
	}
	options := identity.Config{
		Store: store.Identities, Mail: store.Mail, Passwords: account.NewPasswords(account.OWASP), Redis: limits, Limits: config.limits(), SignUpOpen: config.SignUp == "open",
		SecondFactor: config.SecondFactor == secondFactorLiveKeys,
		Log:          log, Metrics: metrics, PublicURL: config.PublicURL, OIDC: oidc, Chains: nodes, Screening: screen,
	}
	if outbox != nil {
		options.MailQueued = outbox.Wake
	}
	identities := identity.New(options)
	if !identities.Persons.PasskeysOn() {
		log.Warn("passkeys are off: browsers know them at a domain over https or at localhost alone, see CORE_PUBLIC_URL")
	}
	return identities, outbox, nil
}

// openDatabase opens the store of a database of this version, and reads the registry.
func openDatabase(
	ctx context.Context, config Config, log *slog.Logger, metrics prometheus.Registerer,
) (store *rooms.Rooms, live *registry.LiveRegistry, err error) {
	if store, err = openStore(config, metrics); err != nil {
		return nil, nil, err
	}
	if err = prepareDatabase(ctx, store, config, log); err == nil {
		live, err = registry.NewLiveRegistry(ctx, store.Registry)
	}
	if err == nil && config.RequireWatched {
		err = live.RequireWatched(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return store, live, nil
}

func prepareDatabase(ctx context.Context, store *rooms.Rooms, config Config, log *slog.Logger) error {
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
			"have Postgres set them for this role, as deploy/postgres.md says", "limits", missing)
	}
	return err
}

// checks are those of the operations listener.
func checks(store *rooms.Rooms, limits redis.UniversalClient, draining *drain) []telemetry.Check {
	return append(replicaChecks(store),
		telemetry.Check{Name: "postgres", Probe: store.CheckReadWrite},
		telemetry.Check{Name: "redis", Probe: func(ctx context.Context) error { return topology.Serving(ctx, limits) }, Optional: true},
		telemetry.Check{Name: "redis_eviction", Probe: func(ctx context.Context) error { return topology.CheckEviction(ctx, limits) }, Optional: true},
		telemetry.Check{Name: "serving", Probe: draining.check},
	)
}

// replicaChecks is the check of the replica, if there is one.
func replicaChecks(store *rooms.Rooms) []telemetry.Check {
	if !store.HasReplica() {
		return nil
	}
	return []telemetry.Check{{Name: "replica", Probe: store.CheckReplica, Optional: true}}
}

// listenBoth opens both listeners before either serves, so that a core that reports ready can be reached.
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

// serveHTTP serves until ctx ends and for delay after it. It then accepts no more connections and waits at most grace for the requests in
// flight.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler, delay, grace time.Duration, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    32 << 10,
		ConnContext:       listen.ConnContext,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listen.Join(listener)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
		time.Sleep(delay)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return fmt.Errorf("finish the requests in flight on %s within %s: %w", listener.Addr(), grace, err)
	}
	return nil
}

// setGCPercent sets GOGC to 400 unless the environment sets it. The live heap is small, so lists would otherwise start a collection many
// times a second, which delays other requests.
func setGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
