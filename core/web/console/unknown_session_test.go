package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/console"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/testkit/asynctest"
)

// Once a network is over its limit, a request with a cookie that belongs to nobody asks nothing of the database, whatever its page or
// form. Those who are signed in from that network go on.
func TestConsole_UnknownSession(t *testing.T) {
	t.Parallel()
	store, statements := pgtest.New(t), &pgtest.Statements{}
	pgtest.Watch(store, statements)
	s := startOn(t, store)
	ann, stranger := s.signedUp(t, "ann@example.com"), s.browserWith(t, strings.Repeat("A", 43))
	ann.get("/console/accounts").is(http.StatusOK)
	asynctest.AtOnce(16, func() bool { return stranger.get("/console").status == http.StatusTooManyRequests })
	for range 3 {
		ann.get("/console/accounts").is(http.StatusOK)
	}
	patterns := console.Patterns()
	if len(patterns) < 60 {
		t.Fatalf("only %d routes", len(patterns))
	}
	for _, pattern := range patterns {
		method, path, found := strings.Cut(pattern, " ")
		if !found {
			method, path = http.MethodGet, pattern+"nothing"
		}
		path = strings.ReplaceAll(path, "{id}", uuid.NewString())
		webtest.MustRefuseUnread(t, pattern, statements, func() bool { return stranger.send(method, path, nil).status == http.StatusTooManyRequests })
	}
}
