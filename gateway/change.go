package main

import (
	"context"
	"os"
	"sync"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/settings"
)

// Source is where the settings come from: this environment, and over it the file that GATEWAY_ENV_FILE names.
func Source(environment map[string]string) settings.Source[Config] {
	return settings.Source[Config]{Variable: "GATEWAY_ENV_FILE", Environment: environment, Parse: ParseConfig}
}

// Follow keeps the gateway to its settings as they change, from those that it was made with, and reads them again whenever
// again delivers. It goes on until ctx ends or the function that it returns is called, which waits for the end.
func (g *Gateway) Follow(ctx context.Context, started settings.Reading[Config], again <-chan os.Signal) (unfollow func()) {
	follower := settings.NewFollower(started, settings.Options[Config]{
		Apply: g.Apply, Again: again, Service: "gateway", Log: g.log, Metrics: g.metrics,
	})
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { follower.Run(ctx) })
	return func() {
		cancel()
		following.Wait()
	}
}

// Apply has the gateway work by these settings from now on, as far as they can change while it runs: fields of Config that
// bear the tag reload. The settings must be valid.
func (g *Gateway) Apply(c Config) {
	g.cores.SetSecret(c.CoreSecret)
	g.core.SetSecret(c.CoreSecret)
	g.forward.SetSecret(c.CoreSecret)
	_ = g.login.Set(c.RedisMode, c.RedisURL.Reveal()) // but for the user it is the URL of before, and valid
	g.limiter.SetFallback(c.LimitFallback)
	g.edge.SetMaxConns(c.MaxConns, c.MaxConnsPerIP)
	g.edge.SetTrustedProxies(c.TrustedProxies)
	g.edge.SetAccessLog(g.accessLog(c))
	_ = g.tracer.SetHeaders(c.TracesHeaders) // which are valid
}

// redisIsOptional reports whether requests are served while Redis does not answer.
func (g *Gateway) redisIsOptional() bool { return g.limiter.Fallback() != limit.Closed }
