package command_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// posts makes intents at the same time, wants each answer to be 201, or 503 with Retry-After, and returns how many are 201.
func posts(t *testing.T, p *process) (made int) {
	t.Helper()
	const many = 40
	statuses := make(chan int, many)
	var work sync.WaitGroup
	for range many {
		work.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.listen+"/v2/transfers", strings.NewReader(transferBody))
			if err != nil {
				t.Error(err)
				return
			}
			for name, value := range map[string]string{
				wire.HeaderGatewaySecret: gatewaySecret, wire.HeaderAccountID: uuid.NewString(), wire.HeaderKeyID: uuid.NewString(),
				wire.HeaderKeyEnv: "test", "Content-Type": "application/json", "Idempotency-Key": uuid.NewString(),
			} {
				request.Header.Set(name, value)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			_, _ = io.Copy(io.Discard, response.Body)
			if response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") == "" {
				t.Error("a 503 without Retry-After")
			}
			statuses <- response.StatusCode
		})
	}
	work.Wait()
	close(statuses)
	for status := range statuses {
		switch status {
		case http.StatusCreated:
			made++
		case http.StatusServiceUnavailable:
		default:
			t.Fatalf("POST: %d", status)
		}
	}
	return made
}

// While its address leads to a standby, or to a server that is read-only, core says so and is not ready, and works again without a
// restart.
func TestServe_Standby(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	pgtest.LoadRegistry(t, pgtest.Open(t, servers.Primary.URL))
	operator := pgtest.OpenAny(t, servers.Replica.URL)
	asynctest.Eventually(t, "the standby has the registry", func() bool {
		return pgtest.LookUp[int](t, operator, `SELECT count(*) FROM tokens`) > 0
	})
	gate := pgtest.NewGate(t, servers.Primary.URL)
	p := serve(t, gate.URL, "CORE_DATABASE_CONNECTIONS=8")
	readiness := func() (status int, text string) {
		response, err := http.Get("http://" + p.ops + "/readyz") //nolint:noctx // go test bounds it
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	notReady := func(because string) {
		t.Helper()
		asynctest.Eventually(t, "core says: "+because, func() bool {
			posts(t, p)
			status, text := readiness()
			return status == http.StatusServiceUnavailable && strings.Contains(text, because)
		})
	}
	writes := func() {
		t.Helper()
		asynctest.Eventually(t, "core writes", func() bool { return posts(t, p) == 40 })
		if status, text := readiness(); status != http.StatusOK {
			t.Errorf("ready: %d %s", status, text)
		}
	}
	gate.SetTarget(t, servers.Primary.URL) // it closes the connections
	gate.Divert(t, servers.Replica.URL, 5)
	writes()
	gate.SetTarget(t, servers.Replica.URL)
	notReady("the server is a standby")
	pgtest.Exec(t, operator, `SELECT pg_promote()`)
	writes()
	pgtest.Exec(t, operator, `ALTER SYSTEM SET default_transaction_read_only = on`)
	pgtest.Exec(t, operator, `SELECT pg_reload_conf()`)
	notReady("the server is read-only")
	pgtest.Exec(t, operator, `ALTER SYSTEM RESET default_transaction_read_only`)
	pgtest.Exec(t, operator, `SELECT pg_reload_conf()`)
	writes()
}
