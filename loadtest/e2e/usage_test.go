package e2e_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
)

// What became of each request is in Postgres in the end, exactly once, over all gateways, whatever is stopped or killed
// but a gateway itself.
func TestUsage_CountedOnce(t *testing.T) {
	t.Parallel()
	// An interval that a gateway does not outlive by chance where it is stopped after a few requests.
	s, _ := ownStack(t, 2, "GATEWAY_USAGE_INTERVAL=2s")
	u := &usages{stack: s, owner: newPerson(t, s.Env().GatewayURL), counted: map[string]usage{}}

	t.Log("accepted, refused, limited")
	key := u.owner.newKey(t)
	began, ended := u.useUp(t, key)
	u.await(t)
	shown := expect[struct{ LastUsedAt time.Time }](t, u.owner.do(http.MethodGet, "/auth/api-key/get?id="+key.ID, nil), 200)
	if shown.LastUsedAt.Before(began.Truncate(time.Millisecond)) || shown.LastUsedAt.After(ended) {
		t.Errorf("lastUsedAt %s, but the last request was made from %s to %s", shown.LastUsedAt, began, ended)
	}

	t.Log("a gateway that is stopped tells what it has counted")
	key = u.owner.newKey(t)
	for range 10 {
		u.ask(t, 1, key, http.MethodGet, "/v2/chains", nil)
	}
	if err := s.Restart(t.Context(), stack.GatewayName(2)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(u.counted, u.stored(t)); diff != "" {
		t.Errorf("usage after a gateway was stopped (-asked +stored):\n%s", diff)
	}

	t.Log("a core that is killed with reports under way loses none and doubles none")
	u.killUnderway(t, 3)
	u.await(t)
	for n := range s.Env().GatewayURLs {
		if err := s.Restart(t.Context(), stack.GatewayName(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(u.counted, u.stored(t)); diff != "" {
		t.Errorf("usage after all gateways were stopped (-asked +stored):\n%s", diff)
	}
	t.Logf("%d keys, %+v", len(u.counted), u.total())
}

// usage is what became of requests with a key.
type usage struct{ Accepted, Limited, Refused int64 }

// usages is what clients know of the usage of their keys.
type usages struct {
	stack *stack.Stack
	owner person

	mu      sync.Mutex
	counted map[string]usage // by the key's id
}

// ask sends a request with the key to the n-th gateway, from 0, and counts it as its answer shows.
func (u *usages) ask(t *testing.T, n int, key createdKey, method, path string, body any) answer {
	t.Helper()
	c := apiClient(t, key.Key)
	c.base = u.stack.Env().GatewayURLs[n]
	a := c.do(method, path, body)
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.counted[key.ID]
	switch {
	case a.Status == http.StatusTooManyRequests:
		now.Limited++
	case slices.Contains([]int{403, 404, 405, 413}, a.Status):
		now.Refused++
	case a.Header.Get("RateLimit-Policy") != "": // it went on to core, whether or not that answered
		now.Accepted++
	default:
		return a // no gateway knew whose key it is
	}
	u.counted[key.ID] = now
	return a
}

// useUp makes requests of every kind until the limit has refused ten, and returns when the last began and ended.
func (u *usages) useUp(t *testing.T, key createdKey) (began, ended time.Time) {
	t.Helper()
	for n := range 2 {
		mainnet := body(on(1, alice), on(1, "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"), "1", on(1, bob), "", "")
		for _, refused := range []struct {
			method, path string
			body         any
			status       int
		}{
			{http.MethodPost, "/v2/transfers", mainnet, 403},
			{http.MethodDelete, "/v2/tokens", nil, 405},
			{http.MethodGet, "/v2/nothing", nil, 404},
		} {
			if a := u.ask(t, n, key, refused.method, refused.path, refused.body); a.Status != refused.status {
				t.Fatalf("%s %s: %d %s", refused.method, refused.path, a.Status, a.Body)
			}
		}
	}
	for n := 0; u.of(key).Limited < 10; n++ {
		began = time.Now()
		u.ask(t, n%2, key, http.MethodGet, "/v2/chains", nil)
		ended = time.Now()
	}
	if got := u.of(key); got.Accepted < 40 {
		t.Errorf("limited too early: %+v", got)
	}
	return began, ended
}

func (u *usages) of(key createdKey) usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counted[key.ID]
}

func (u *usages) total() (sum usage) {
	for _, one := range u.counted {
		sum.Accepted += one.Accepted
		sum.Limited += one.Limited
		sum.Refused += one.Refused
	}
	return sum
}

// killUnderway kills core again and again while it commits a report, which is then stored without anybody being told.
func (u *usages) killUnderway(t *testing.T, kills int) {
	t.Helper()
	u.execute(t, `CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END'`)
	u.execute(t, `CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON usage_reports DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION linger()`)
	t.Cleanup(func() {
		_ = executeOn(context.WithoutCancel(t.Context()), u.stack.Env().DatabaseURL, `DROP FUNCTION IF EXISTS linger CASCADE`)
	})
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 8 {
		key := u.owner.newKey(t)
		clients.Go(func() {
			ticker := time.NewTicker(20 * time.Millisecond)
			defer ticker.Stop()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-ticker.C:
					u.ask(t, n%2, key, http.MethodGet, "/v2/chains", nil)
				}
			}
		})
	}
	for range kills {
		u.awaitCommit(t)
		if err := u.stack.Kill(stack.Core); err != nil {
			t.Fatal(err)
		}
		if err := u.stack.AwaitReady(t.Context(), stack.Core); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	clients.Wait()
	u.execute(t, `DROP TRIGGER linger ON usage_reports`)
}

// awaitCommit returns while a report is being committed.
func (u *usages) awaitCommit(t *testing.T) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		var lingering int
		queryRow(t, u.stack.Env().DatabaseURL, &lingering,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`)
		if lingering > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no gateway reports its usage")
		}
	}
}

func (u *usages) execute(t *testing.T, sql string) {
	t.Helper()
	if err := executeOn(t.Context(), u.stack.Env().DatabaseURL, sql); err != nil {
		t.Fatal(err)
	}
}

// await waits until all is stored that was counted.
func (u *usages) await(t *testing.T) {
	t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		stored := u.stored(t)
		if maps.Equal(stored, u.counted) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("usage (-asked +stored):\n%s", cmp.Diff(u.counted, stored))
		}
	}
}

func (u *usages) stored(t *testing.T) map[string]usage {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), u.stack.Env().DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `SELECT k.id::text, sum(accepted)::bigint, sum(limited)::bigint, sum(refused)::bigint
		FROM key_usage JOIN api_keys k ON k.id = key_id WHERE k.account_id =
			(SELECT id FROM accounts WHERE email = $1) GROUP BY k.id`, u.owner.email)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]usage{}
	var id string
	var sum usage
	if _, err := pgx.ForEachRow(rows, []any{&id, &sum.Accepted, &sum.Limited, &sum.Refused}, func() error {
		stored[id] = sum
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return stored
}
