package main

import (
	"intents.internal/core/access"
	"intents.internal/core/api"
	"intents.internal/core/postgres"
)

// changing are the parts of core whose settings change while it runs.
type changing struct {
	store   *postgres.Store
	secrets *api.Secrets
	access  *access.Service
}

// apply has core work by these settings from now on, as far as they can change while it runs: fields of Config that bear the
// tag reload. The settings must be valid.
func (p changing) apply(c Config) {
	p.secrets.Set(c.GatewaySecret, c.GatewaySecretPrevious)
	p.access.SetLimits(c.limits())
	p.access.SetSignUpOpen(c.SignUp == "open")
	_ = p.store.SetLogins(c.DatabaseURL.Reveal(), c.ReadDatabaseURL.Reveal()) // but for the users they are those of before, and valid
}
