package e2e_test

import (
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	oldPassword = "what-redis-asked-for-before"
	newPassword = "what-redis-asks-for-now"
	// day is so long that a bucket gains nothing while it is watched: limitPerDay requests pass, and no more.
	day, limitPerDay = 86400, 40
)

// guardedRedis is one that asks for a password, and its operator, who has another way in.
type guardedRedis struct {
	t        *testing.T
	address  string
	operator *redis.Client
}

func startGuardedRedis(t *testing.T) guardedRedis {
	t.Helper()
	server := ownRedis(t)
	if server.InProcess() {
		if os.Getenv("CI") == "true" {
			t.Fatal("no redis-server or valkey-server on PATH")
		}
		t.Skip("no redis-server or valkey-server on PATH")
	}
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := guardedRedis{t: t, address: u.Host, operator: redis.NewClient(&redis.Options{Addr: u.Host, Username: "operator", Password: "any"})}
	t.Cleanup(func() { _ = g.operator.Close() })
	anyone := redis.NewClient(&redis.Options{Addr: u.Host})
	defer anyone.Close()
	for _, command := range [][]any{
		{"ACL", "SETUSER", "operator", "on", "nopass", "~*", "&*", "+@all"},
		{"CONFIG", "SET", "requirepass", oldPassword},
	} {
		if err := anyone.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func (g guardedRedis) url(password string) string {
	return "redis://:" + password + "@" + g.address + "/0"
}

func (g guardedRedis) do(command ...any) any {
	g.t.Helper()
	reply, err := g.operator.Do(g.t.Context(), command...).Result()
	if err != nil {
		g.t.Fatalf("%v: %v", command, err)
	}
	return reply
}

// lets tells whether a new connection is made with this password.
func (g guardedRedis) lets(password string) bool {
	client := redis.NewClient(&redis.Options{Addr: g.address, Password: password, MaxRetries: -1})
	defer client.Close()
	return client.Ping(g.t.Context()).Err() == nil
}

// undecided is how many requests gateways have decided on without Redis, and how often cores had to do without it.
func (l *live) undecided() (gateways, cores float64) {
	l.t.Helper()
	for _, decision := range []string{"fallback_allowed", "fallback_refused", "fallback_unavailable"} {
		gateways += l.metric("gateway", `intents_gateway_limit_decisions_total\{decision="`+decision+`"\}`)
	}
	return gateways, l.metric("core", "intents_core_access_redis_failures_total")
}

// dayKey is a new key with limitPerDay requests.
func (l *live) dayKey(owner person) string {
	l.t.Helper()
	created := owner.newKey(l.t)
	const sql = "UPDATE api_keys SET limit_requests = $2, limit_period_seconds = $3 WHERE start = $1"
	if err := executeOn(l.t.Context(), l.env.DatabaseURL, sql, created.Key[:12], limitPerDay, day); err != nil {
		l.t.Fatal(err)
	}
	return created.Key
}

// passes makes this many requests with the key at both gateways, several at once, and counts those that pass.
func (l *live) passes(key string, requests int) int {
	l.t.Helper()
	var passed atomic.Int64
	var all sync.WaitGroup
	for n := range requests {
		c := apiClient(l.t, key)
		c.base = l.env.GatewayURLs[n%len(l.env.GatewayURLs)]
		all.Go(func() {
			switch a, err := c.try(http.MethodGet, "/v2/chains", nil); {
			case err != nil || a.Status != http.StatusOK && a.Status != http.StatusTooManyRequests:
				l.t.Errorf("%d %v %s", a.Status, err, a.Body)
			case a.Status == http.StatusOK:
				passed.Add(1)
			}
		})
	}
	all.Wait()
	return int(passed.Load())
}

// tookOver waits until every process of both services has read its settings since.
func (l *live) tookOver(since time.Time) {
	l.t.Helper()
	for _, service := range []string{"core", "gateway"} {
		until(l.t, service+" has read its settings", func() bool {
			return slices.Min(l.metrics(service, service+"_config_reload_timestamp_seconds")) > float64(since.UnixMilli())/1000
		})
	}
}

// The steps are those of deploy/README.md, "Replacing Redis's password". No request fails, and Redis decides on all of them but those
// whose connection is killed under way; limits go on exactly where they were.
func TestRedisPasswordIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	server := startGuardedRedis(t)
	l := startLiveOn(t, server.url(oldPassword))
	owner := newPerson(t, l.env.GatewayURLs[0])
	begun, whole := l.dayKey(owner), l.dayKey(owner)
	if passed := l.passes(begun, limitPerDay/2); passed != limitPerDay/2 {
		t.Errorf("before, %d of %d requests passed", passed, limitPerDay/2)
	}
	clients := l.drive()
	clients.more(t, 100)

	server.do("ACL", "SETUSER", "default", ">"+newPassword)
	changed := time.Now()
	l.write(l.coreFile, "CORE_REDIS_URL="+server.url(newPassword))
	l.write(l.gatewayFile, "GATEWAY_REDIS_URL="+server.url(newPassword))
	l.tookOver(changed)
	server.do("ACL", "SETUSER", "default", "<"+oldPassword)
	if server.lets(oldPassword) || !server.lets(newPassword) {
		t.Fatal("Redis does not take the new password alone")
	}
	clients.more(t, 100)
	if gateways, cores := l.undecided(); gateways != 0 || cores != 0 {
		t.Errorf("while the password was replaced, gateways decided %g times without Redis, cores %g times", gateways, cores)
	}

	const kills = 6
	killed := int64(0)
	for range kills {
		closed, _ := server.do("CLIENT", "KILL", "TYPE", "normal").(int64)
		killed += closed
		clients.more(t, 40)
	}
	explained, _ := l.undecided()
	if most := float64(kills * driven); explained > most || killed < kills {
		t.Errorf("%d connections were killed, and %g requests decided without Redis; at most %g were under way", killed, explained, most)
	}
	clients.more(t, 150)
	owner.signInWrongly(t, 6)
	if gateways, cores := l.undecided(); gateways != explained || cores != 0 {
		t.Errorf("on new connections, gateways decided %g times without Redis, cores %g times", gateways-explained, cores)
	}
	if passed := l.passes(begun, limitPerDay); passed != limitPerDay/2 {
		t.Errorf("after it, %d requests of a bucket passed that had %d left", passed, limitPerDay/2)
	}
	if passed := l.passes(whole, 2*limitPerDay); passed != limitPerDay {
		t.Errorf("after it, %d requests of a full bucket passed, want %d", passed, limitPerDay)
	}
	clients.stop()
	t.Logf("%d requests, %d failed; %d connections killed, %g requests decided without Redis by that",
		clients.answered.Load(), len(clients.failures), killed, explained)
	if len(clients.failures) > 0 {
		t.Errorf("%d requests failed, the first with %s", len(clients.failures), clients.failures[0])
	}
}

// signInWrongly tries wrong passwords, which cores count in Redis.
func (p person) signInWrongly(t *testing.T, times int) {
	t.Helper()
	for range times {
		a, err := p.try(http.MethodPost, "/auth/sign-in/email", map[string]any{"email": p.email, "password": "wrong horse battery"})
		if err != nil || a.Status != http.StatusUnauthorized {
			t.Errorf("a wrong password: %d %v %s", a.Status, err, a.Body)
		}
	}
}
