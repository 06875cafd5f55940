package pgtest

import (
	"net/url"
	"testing"

	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/embedded"
)

// Replicated is a Postgres with a streaming replica, both only for the test, because what a test does to a server affects all its
// databases.
type Replicated struct {
	Primary, Replica *embedded.Postgres
}

// NewReplicated starts both, with a migrated database, in a few seconds. They are stopped with the test.
func NewReplicated(tb testing.TB) Replicated {
	tb.Helper()
	primary, err := embedded.StartPostgres(tb.Context(), embedded.PostgresConfig{Ephemeral: true})
	if err != nil {
		tb.Fatal(err)
	}
	stopAfter(tb, primary)
	store, err := rooms.Open(primary.URL, postgres.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Migrate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return Replicated{Primary: primary, Replica: NewReplica(tb, primary)}
}

// OpenAny opens a store on a server that may be a standby or read-only, as an operator would, and closes it with the test.
func OpenAny(tb testing.TB, serverURL string) *rooms.Rooms {
	tb.Helper()
	target, err := url.Parse(serverURL)
	if err != nil {
		tb.Fatal(err)
	}
	query := target.Query()
	query.Set("target_session_attrs", "any")
	target.RawQuery = query.Encode()
	return Open(tb, target.String())
}

// NewReplica starts a replica of a private Postgres. It is stopped with the test.
func NewReplica(tb testing.TB, of *embedded.Postgres) *embedded.Postgres {
	tb.Helper()
	replica, err := of.StartReplica(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	stopAfter(tb, replica)
	return replica
}

func stopAfter(tb testing.TB, p *embedded.Postgres) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Error(err)
		}
	})
}
