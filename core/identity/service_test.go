package identity_test

import (
	"log/slog"
	"testing"

	"intents.internal/core/identity"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/postgres/pgtest"
	"intents.internal/pkg/telemetry"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newService is at http://intents.example on a database of the test's own, with limits that nothing meets by chance.
func newService(t *testing.T, change ...func(*identity.Config)) *identity.Service {
	t.Helper()
	return newServiceOn(t, pgtest.New(t), change...)
}

func newServiceOn(t *testing.T, store *postgres.Store, change ...func(*identity.Config)) *identity.Service {
	t.Helper()
	config := identity.Config{
		Store: store, SignUpOpen: true, PublicURL: "http://intents.example", Log: slog.New(slog.DiscardHandler), Metrics: telemetry.NewRegistry(),
		Limits: identity.Limits{SignInPerIP: 1000, SignInPerAccount: 1000, SignInPerAccountAndIP: 1000, SignUpPerIP: 1000, KeysPerAccount: 1000, KeysPerIP: 1000, MailsPerAddress: 1000, MailsPerIP: 1000},
	}
	for _, c := range change {
		c(&config)
	}
	s, err := identity.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
