package api_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/rooms"
	"intents.internal/core/web/webtest"
)

func TestMain(m *testing.M) { pgtest.Main(twice{m}) }

// twice runs the tests, and then those of POST /v2/transfers again with each request in a batch.
type twice struct{ *testing.M }

func (m twice) Run() int {
	code := webtest.Documented{M: m.M, Answers: func(path string) bool { return !strings.HasPrefix(path, "/auth/") }}.Run()
	if code != 0 || webtest.InBatch || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.list").Value.String() != "" {
		return code
	}
	fmt.Println("the tests of POST /v2/transfers again, with each request in a batch")
	webtest.InBatch = true
	if err := flag.Set("test.run", "Transfer|Idempotency|Failure|Trace|Route"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.M.Run()
}

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
