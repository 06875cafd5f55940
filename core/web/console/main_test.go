package console_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/intents"
	"intents.internal/core/outbound"
	"intents.internal/core/pgtest"
	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/web/console"
	"intents.internal/core/webhooks"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/topology"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const password = "correct horse battery"

// site is the console on a database of the test's own, with the registry of pgtest.
type site struct {
	url   string
	store *rooms.Rooms
	known *registry.Snapshot
	live  *registry.LiveRegistry
	log   *asynctest.Buffer
}

// knownHash is that of password.
var knownHash = sync.OnceValues(func() (string, error) {
	return pgtest.Passwords().Hash(context.Background(), password)
})

func start(t *testing.T, change ...func(*identity.Config)) *site {
	t.Helper()
	return startOn(t, pgtest.New(t), change...)
}

func startOn(t *testing.T, store *rooms.Rooms, change ...func(*identity.Config)) *site {
	t.Helper()
	return startWith(t, store, func(*intents.Config) {}, change...)
}

func startWith(t *testing.T, store *rooms.Rooms, changeIntents func(*intents.Config), change ...func(*identity.Config)) *site {
	t.Helper()
	return startPages(t, store, changeIntents, func(*console.Config) {}, change...)
}

func startPages(
	t *testing.T, store *rooms.Rooms, changeIntents func(*intents.Config), changePages func(*console.Config), change ...func(*identity.Config),
) *site {
	t.Helper()
	s := &site{store: store, known: pgtest.LoadRegistry(t, store), log: &asynctest.Buffer{}}
	live, err := registry.NewLiveRegistry(t.Context(), store.Registry)
	if err != nil {
		t.Fatal(err)
	}
	s.live = live
	server := httptest.NewUnstartedServer(nil)
	t.Cleanup(server.Close)
	publicURL := "http://" + server.Listener.Addr().String()
	config := identity.Config{
		Store: store.Identities, Mail: store.Mail, Passwords: pgtest.Passwords(), SignUpOpen: true, PublicURL: publicURL,
		Log: slog.New(slog.DiscardHandler), Metrics: telemetry.NewRegistry(),
		Limits: identity.Limits{SignInPerIP: 1000, SignInPerAccount: 1000, SignInPerAccountAndIP: 1000, SignUpPerIP: 1000, KeysPerAccount: 1000, KeysPerIP: 1000, MailsPerAddress: 1000, MailsPerIP: 1000},
	}
	for _, c := range change {
		c(&config)
	}
	service := identity.New(config)
	sealer, err := webhooks.NewSealer(make([]byte, 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	rules := &webhooks.Rules{Networks: outbound.NewNetworks(nil), Sealer: sealer}
	ofIntents := intents.Config{Store: store.Intents, Registry: live}
	changeIntents(&ofIntents)
	pages := console.Config{
		Now:      store.Identities.Now,
		Identity: service, Identities: store.Identities, Transfers: store.Intents, Events: store.Feed, Webhooks: webhooks.NewService(store.Webhooks, rules, service), Registry: live, Cookie: identity.NewCookie(publicURL), PublicURL: publicURL,
		Log: slog.New(slog.NewJSONHandler(s.log, nil)), Intents: intents.New(ofIntents),
	}
	changePages(&pages)
	if server.Config.Handler, err = console.New(pages); err != nil {
		t.Fatal(err)
	}
	server.Start()
	s.url = server.URL
	return s
}

// startOnRedis starts a site that shares the limits of keys with gateways.
func startOnRedis(t *testing.T, hooks ...redis.Hook) (*site, *embedded.Redis) {
	t.Helper()
	server, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	client, err := identity.NewRedis(topology.Single, server.URL, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Ping(t.Context()).Err(); err != nil { // a connection begins with commands of its own
		t.Fatal(err)
	}
	for _, hook := range hooks {
		client.AddHook(hook)
	}
	return start(t, func(c *identity.Config) { c.Redis = client }), server
}

// ann is the account of ann@example.com.
func (s *site) ann(t *testing.T) *account.Account {
	t.Helper()
	found, err := s.store.Identities.AccountByEmail(t.Context(), "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// lastMinute is a whole minute that every chart shows.
func lastMinute() time.Time { return time.Now().UTC().Truncate(time.Minute).Add(-time.Minute) }
