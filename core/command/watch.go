package command

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
)

// watchChains runs `core watch` until ctx ends, then gives its leases back.
func watchChains(ctx context.Context, args []string) error {
	if len(args) != 0 {
		return usageError("watch takes no further words; settings come from the environment")
	}
	metrics := telemetry.NewRegistry()
	log, closeLog := newLog(metrics)
	return errors.Join(watchUntil(ctx, log, metrics), closeLog())
}

// checkWatch adds the faults of the settings of `core watch`.
func (c Config) checkWatch(f *settings.Faults) {
	c.check(f)
	f.Expect(c.RPCFile != "", "CORE_RPC_FILE", "is required: it names the providers of the chains to watch")
}

func watchUntil(ctx context.Context, log *slog.Logger, metrics *prometheus.Registry) (err error) {
	config, providers, err := readWithProviders(Config.checkWatch)
	if err != nil {
		return err
	}
	setGCPercent()
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
	operations := telemetry.Operations(metrics, telemetry.Check{Name: "postgres", Probe: store.CheckReadWrite})
	listener, err := open(ctx, config.OpsListen)
	if err != nil {
		return err
	}
	watched, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	group, ctx := errgroup.WithContext(ctx)
	startScreening(ctx, group, screen)
	group.Go(func() error { live.Run(ctx, log); return nil })
	group.Go(func() error { defer finish(); chains.watcher.Run(ctx); return nil })
	group.Go(func() error { return serveHTTP(watched, listener, operations, 0, time.Second, log) })
	log.Info("watching", "chains", len(providers), "ops_listen", config.OpsListen)
	err = group.Wait()
	log.Info("stopped")
	return err
}
