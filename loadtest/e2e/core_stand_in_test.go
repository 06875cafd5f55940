package e2e_test

import (
	"net/http"
	"net/http/cookiejar"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/deploy/stack"
	"intents.internal/gateway/upstream/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

const pathChains = "/v2/chains"

// The gateway's tests run on a stand-in for core. It answers the same requests as the real core on a real Postgres does.
func TestCoreStandIn_SameResponses(t *testing.T) {
	t.Parallel()
	core, standIn := realCore(t), standInCore(t)
	core.walk()
	standIn.walk()
	if diff := cmp.Diff(core.seen, standIn.seen); diff != "" {
		t.Errorf("(-core +stand-in):\n%s", diff)
	}
	if len(core.seen) < 30 {
		t.Errorf("only %d answers were compared", len(core.seen))
	}
}

func realCore(t *testing.T) *internalAPI {
	t.Helper()
	var log asynctest.Buffer
	s, err := stack.Start(t.Context(), stack.Config{
		Mail: receiveMail,
		Data: t.TempDir(), Binaries: binaries, Listen: "127.0.0.1:0", Ephemeral: true, InProcessRedis: true, Log: &log,
		CoreEnv:    append([]string{"CORE_GATEWAY_SECRET=" + coretest.Secret.Reveal()}, oneAddress...),
		GatewayEnv: []string{"GATEWAY_CORE_SECRET=" + coretest.Secret.Reveal()},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &client{t: t, base: s.Env().GatewayURL, http: &http.Client{Jar: jar, Transport: direct.Transport, Timeout: direct.Timeout}}
	signIn := map[string]any{"email": s.Env().AccountEmail, "password": s.Env().AccountPassword}
	if a := browser.do(http.MethodPost, "/auth/sign-in/email", signIn); a.Status != http.StatusOK {
		t.Fatalf("sign in: %d %s", a.Status, a.Body)
	}
	ids := map[apikey.Key]string{}
	return &internalAPI{
		t: t, client: &client{t: t, base: s.Env().CoreURL, http: direct}, key: parsed(t, s.Env().TestKey),
		make: func() apikey.Key {
			made := expect[struct{ ID, Key string }](t, browser.do(http.MethodPost, "/auth/api-key/create", map[string]any{"name": "further"}), 200)
			key := parsed(t, made.Key)
			ids[key] = made.ID
			return key
		},
		revoke: func(key apikey.Key) {
			if a := browser.do(http.MethodPost, "/auth/api-key/delete", map[string]any{"keyId": ids[key]}); a.Status != http.StatusOK {
				t.Fatalf("delete the key: %d %s", a.Status, a.Body)
			}
		},
	}
}

func standInCore(t *testing.T) *internalAPI {
	t.Helper()
	c := coretest.Start(t, nil)
	c.Documents.Put(pathChains, `[{"chainId":"eip155:1","environment":"live"},{"chainId":"eip155:11155111","environment":"test"}]`)
	make := func() apikey.Key {
		key := apikey.New(network.Test)
		c.Put(key, wire.VerifiedKey{AccountLimit: wire.KeyLimit{Requests: 1000, PeriodSeconds: 60}})
		return key
	}
	return &internalAPI{t: t, client: &client{t: t, base: c.URL.String(), http: direct}, key: make(), make: make, revoke: c.Revoke}
}

func parsed(t *testing.T, text string) apikey.Key {
	t.Helper()
	key, err := apikey.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
