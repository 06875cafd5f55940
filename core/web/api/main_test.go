package api_test

import (
	"testing"

	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/rooms"
	"intents.internal/core/web/webtest"
)

// service is what the tests of clients' routes call.
type service struct{ *webtest.Service }

func start(t *testing.T, change ...func(*webtest.Settings)) *service {
	t.Helper()
	return &service{webtest.Start(t, change...)}
}

func startOn(t *testing.T, store *rooms.Rooms, change ...func(*webtest.Settings)) *service {
	t.Helper()
	return &service{webtest.StartOn(t, store, change...)}
}

// quoting makes the solvers the service's providers of quotes.
func quoting(t *testing.T, solvers ...*providertest.Solver) func(*webtest.Settings) {
	t.Helper()
	return func(c *webtest.Settings) { c.Quotes.Providers = providertest.Providers(t, c.API.Metrics, solvers...) }
}
