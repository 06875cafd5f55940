package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"intents.internal/pkg/embedded"
	"intents.internal/pkg/tracing/tracingtest"
)

const (
	clientSecret      = "what the provider gave us at first"
	otherClientSecret = "what the provider gave us later"
)

// services are those that core speaks to besides its database.
type services struct {
	redis        *embedded.Redis
	one, another *provider
	collector    *tracingtest.Collector
}

func startServices(t *testing.T) services {
	t.Helper()
	limits, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limits.Stop() })
	return services{redis: limits, one: startProvider(t), another: startProvider(t), collector: tracingtest.Start(t, nil)}
}

// settings are what core is told of them at the start.
func (s services) settings() []string {
	return []string{
		"CORE_REDIS_URL=" + s.redis.URL,
		"CORE_OIDC_ISSUER=" + s.one.url, "CORE_OIDC_CLIENT_ID=intents", "CORE_OIDC_CLIENT_SECRET=" + clientSecret,
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.collector.URL, "OTEL_TRACES_SAMPLER=parentbased_always_on",
	}
}

func (s services) redisAsOther() string {
	return strings.Replace(s.redis.URL, "//", "//other:pass%20word@", 1)
}

// haveUsers makes Redis's other user, and tells that there are none in the Redis inside this program.
func (s services) haveUsers(t *testing.T) bool {
	t.Helper()
	if s.redis.InProcess() {
		if os.Getenv("CI") == "true" {
			t.Fatal("no redis-server or valkey-server on PATH")
		}
		t.Log("no redis-server on PATH: that its user and password change is not tried")
		return false
	}
	s.onRedis(t, "ACL", "SETUSER", "other", "on", ">pass word", "~*", "&*", "+@all")
	return true
}

// onRedis runs a command as an operator does.
func (s services) onRedis(t *testing.T, command ...any) (reply string) {
	t.Helper()
	options, err := redis.ParseURL(s.redis.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	got, err := client.Do(t.Context(), command...).Result()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return fmt.Sprint(got)
}

// provider is an OpenID Connect provider that vouches for nobody, and keeps in mind who asked it to last.
type provider struct {
	url    string
	secret atomic.Value // the client's, a string
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": p.url, "authorization_endpoint": p.url + "/auth", "token_endpoint": p.url + "/token", "jwks_uri": p.url + "/keys",
		})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		_, encoded, _ := r.BasicAuth()
		secret, _ := url.QueryUnescape(encoded)
		p.secret.Store(secret)
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// leave has a visitor sign in by the provider, and returns where core sends the browser and what cookie that bears.
func (c *changed) leave() (to *url.URL, cookie string) {
	c.t.Helper()
	ip, _ := c.visitor()
	status, cookie, text := c.ask(gatewaySecret, ip, "", "/auth/sign-in/oauth2", `{"providerId":"oidc"}`)
	var answer struct{ URL string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK {
		c.t.Fatalf("%d %s", status, text)
	}
	to, err := url.Parse(answer.URL)
	if err != nil {
		c.t.Fatal(err)
	}
	return to, cookie
}

// comeBack has a visitor return from the provider, which is then asked about its code, and tells what core proved itself by.
func (c *changed) comeBack() (secret string) {
	c.t.Helper()
	to, cookie := c.leave()
	ip, _ := c.visitor()
	c.call(gatewaySecret, ip, cookie, "/auth/oauth2/callback/oidc?code=code&state="+to.Query().Get("state"), "")
	secret, _ = c.others.one.secret.Load().(string)
	return secret
}

// changesElsewhere are of whom core speaks to, and of its log.
var changesElsewhere = []change{
	{
		"CORE_ACCESS_LOG",
		[]string{"CORE_ACCESS_LOG=true"},
		func(c *changed) bool {
			before := strings.Count(c.out.String(), `"msg":"request"`)
			for range 20 { // by then the first line has arrived here
				c.call(gatewaySecret, "", "", "/auth/get-session", "")
			}
			return strings.Count(c.out.String(), `"msg":"request"`) > before
		},
	},
	{
		"CORE_REDIS_URL",
		[]string{"CORE_REDIS_URL=$REDIS_AS_OTHER"},
		func(c *changed) bool {
			c.others.onRedis(c.t, "CLIENT", "KILL", "TYPE", "normal")
			ip, email := c.visitor()
			c.guess(ip, email) // which is counted
			return strings.Contains(c.others.onRedis(c.t, "CLIENT", "LIST"), " user=other ")
		},
	},
	{
		"CORE_OIDC_ISSUER",
		[]string{"CORE_OIDC_ISSUER=$OTHER_ISSUER"},
		func(c *changed) bool { to, _ := c.leave(); return "http://"+to.Host == c.others.another.url },
	},
	{
		"CORE_OIDC_CLIENT_ID",
		[]string{"CORE_OIDC_CLIENT_ID=others"},
		func(c *changed) bool { to, _ := c.leave(); return to.Query().Get("client_id") == "others" },
	},
	{
		"CORE_OIDC_CLIENT_SECRET",
		[]string{"CORE_OIDC_CLIENT_SECRET=" + otherClientSecret},
		func(c *changed) bool { return c.comeBack() == otherClientSecret },
	},
	{
		"CORE_OIDC_NAME",
		[]string{"CORE_OIDC_NAME=Another"},
		func(c *changed) bool {
			_, _, page := c.ask(gatewaySecret, "", "", "/console/sign-in", "")
			return strings.Contains(page, "Another")
		},
	},
	{
		"OTEL_EXPORTER_OTLP_HEADERS",
		[]string{"OTEL_EXPORTER_OTLP_HEADERS=authorization=other"},
		func(c *changed) bool {
			c.call(gatewaySecret, "", "", "/auth/get-session", "")
			_, headers := c.others.collector.Exports()
			return headers.Get("Authorization") == "other"
		},
	},
}
