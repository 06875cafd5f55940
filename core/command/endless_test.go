package command_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/endless"
)

// Core ends in time while each of the services that it asks has a request of it and never ends the answer.
func TestServe_TermWhileOthersNeverAnswer(t *testing.T) {
	t.Parallel()
	for name, mail := range map[string]string{
		"101 and silence": "a greeting and silence", "a byte a second": "a byte a second", "a body without end": "a greeting without end",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := map[string]*endless.Server{"mail": endless.Serve(t, endless.SMTP[mail])}
			for _, of := range []string{"webhook", "node", "quotes", "oidc"} {
				asked[of] = endless.Serve(t, endless.HTTP[name])
			}
			quotes := filepath.Join(t.TempDir(), "quotes.json")
			if err := os.WriteFile(quotes, fmt.Appendf(nil, `[{"name": "solver", "kind": "oif", "url": "http://%s", "environment": "test",
				"deployment": "test"}]`, asked["quotes"].Address), 0o600); err != nil {
				t.Fatal(err)
			}
			database := pgtest.Database(t)
			store := pgtest.Open(t, database)
			pgtest.LoadRegistry(t, store)
			p := serve(t, database, "CORE_DRAIN_DELAY=0s", "CORE_SHUTDOWN_GRACE=20s", "CORE_PUBLIC_URL=http://intents.example", "CORE_REDIS_URL=redis://127.0.0.1:1",
				"CORE_RPC_FILE="+providersFile(t, map[string][]string{"eip155:11155111": {"http://" + asked["node"].Address}}),
				"CORE_QUOTES_FILE="+quotes, "CORE_QUOTES_ALLOW=127.0.0.1/32",
				"CORE_OIDC_ISSUER=http://"+asked["oidc"].Address, "CORE_OIDC_CLIENT_ID=intents", "CORE_OIDC_CLIENT_SECRET=secret",
				"CORE_SMTP_URL=smtp://"+asked["mail"].Address, "CORE_SMTP_FROM=no-reply@intents.example",
				"CORE_WEBHOOK_SECRET_KEY="+strings.Repeat("ab", 32), "CORE_WEBHOOK_ALLOW=127.0.0.1/32")
			c := client{t, pgtest.SignUp(t, store, "ann@example.com").ID}
			status, _, answer := c.ask(p, http.MethodPost, "/v2/webhooks", fmt.Sprintf(`{"url":"http://%s/hook"}`, asked["webhook"].Address))
			if status != http.StatusCreated {
				t.Fatalf("POST /v2/webhooks: %d %s", status, answer)
			}
			c.change(p, "/v2/transfers", transferBody)
			status, _, answer = c.ask(p, http.MethodPost, "/auth/sign-up/email", `{"name":"Bob","email":"bob@example.com","password":"correct horse battery"}`)
			if status != http.StatusOK {
				t.Fatalf("sign-up: %d %s", status, answer)
			}
			quoted := make(chan struct{})
			go func() {
				defer close(quoted)
				c.ask(p, http.MethodPost, "/v2/quotes", quoteBody, "Idempotency-Key", uuid.NewString())
			}()
			for of, server := range asked {
				asynctest.Eventually(t, of+" is asked", func() bool { return server.Requests() > 0 })
			}
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			select {
			case <-p.ended:
				if p.err != nil {
					t.Errorf("core ended with %v\n%s", p.err, p.out)
				}
			case <-time.After(40 * time.Second):
				t.Error("core still runs")
			}
			<-quoted
		})
	}
}

// `core chains check` ends with a finding about a node that switches protocols and says no more.
func TestCheckChains_EndlessResponse(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	pgtest.LoadRegistry(t, pgtest.Open(t, database))
	node := endless.Serve(t, endless.HTTP["101 and silence"])
	got := core(t, "", append(on(database), "CORE_RPC_FILE="+providersFile(t, map[string][]string{"eip155:421614": {"http://" + node.Address}})), "chains", "check")
	if got.Code != 1 || !strings.Contains(got.Out, "HTTP 101 Switching Protocols") {
		t.Errorf("%+v", got)
	}
}

const quoteBody = `{"source":{"account":"eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
	"token":"eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238","amount":"5"},
	"destination":{"account":"eip155:84532:0x70997970C51812dc3A010C7d01b50e0d17dc79C8","token":"eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e"}}`
