package main

import (
	"sync/atomic"

	"intents.internal/core/access"
	"intents.internal/core/api"
	"intents.internal/core/postgres"
	"intents.internal/pkg/topology"
	"intents.internal/pkg/tracing"
)

// changing are the parts of core whose settings change while it runs.
type changing struct {
	store     *postgres.Store
	redis     *topology.Login
	secrets   *api.Secrets
	access    *access.Service
	accessLog *atomic.Bool
	tracer    *tracing.Tracer
}

// apply has core work by these settings from now on, as far as they can change while it runs: fields of Config that bear the
// tag reload. The settings must be valid.
func (p changing) apply(c Config) {
	p.secrets.Set(c.GatewaySecret, c.GatewaySecretPrevious)
	p.access.SetLimits(c.limits())
	p.access.SetSignUpOpen(c.SignUp == "open")
	p.access.SetOIDC(c.oidc())
	p.accessLog.Store(c.AccessLog)
	_ = p.tracer.SetHeaders(c.TracesHeaders) // which are valid
	// But for the users these are the URLs of before, and valid.
	_ = p.store.SetLogins(c.DatabaseURL.Reveal(), c.ReadDatabaseURL.Reveal())
	_ = p.redis.Set(c.RedisMode, c.RedisURL.Reveal())
}
