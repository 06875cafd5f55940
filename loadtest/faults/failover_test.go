package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/faultproxy"
	"intents.internal/pkg/testkit/freeport"
)

// Three Postgres under Patroni lose their leader in each of these ways, while cores reach them by all the ways that deploy/postgres-failover.md
// names. What was acknowledged is kept, under one id a key, and no client gets a 500.
func TestPatroni(t *testing.T) {
	t.Parallel()
	p := startPatroni(t)
	moving := faultproxy.Start(t, p.leader(t).address)
	fleet := p.startWays(t, moving)

	w := startWorkload(t, &p.database, fleet, members, reads, writes, keyedWrites, batches)
	readers := []*feedReader{startFeedReader(t, fleet[0], w.keys[0], 7), startFeedReader(t, fleet[1], w.keys[1], 100)}
	w.awaitMore(20)
	t.Run("switchover", func(t *testing.T) {
		old, fresh := p.switchOver(t)
		w.awaitEach(t, fleet[:2], time.Now())
		// The address still leads to the old leader, which follows.
		asynctest.Eventually(t, "the old leader is a standby", func() bool { return system.IsOK(t, old.rest+"/replica") })
		await503(t, w, 2)
		moved := time.Now()
		moving.SetTarget(fresh.address)
		took := w.awaitEach(t, fleet[2:], moved)
		t.Logf("writes succeeded %s after the address moved", took)
		asynctest.Eventually(t, "the cluster is whole", func() bool { return p.inSync(t) })
	})
	t.Run("leader killed", func(t *testing.T) {
		old := p.leader(t)
		killed := time.Now()
		old.killPostgres(t)
		fresh := p.awaitLeader(t, old)
		moving.SetTarget(fresh.address)
		took := w.awaitEach(t, fleet, killed)
		t.Logf("writes succeeded by every way %s after the leader was killed", took)
		asynctest.Eventually(t, "the cluster is whole", func() bool { return p.inSync(t) })
	})
	all := w.stop()
	w.mustBeStored()
	mustHaveReadAll(t, &p.database, readers)
	all.mustBeSound(t)
	for _, s := range all.failed() {
		if s.status == http.StatusInternalServerError {
			t.Errorf("a client got a 500:%s", samples{s}.first(1, s.began))
		}
	}
	t.Run("leader isolated", func(t *testing.T) { p.isolateLeader(t, fleet[0]) })
}

// isolateLeader cuts the leader off from its standbys and not from core, while one client writes: it is told of nothing that the standby,
// which takes over, has not.
func (p *patroni) isolateLeader(t *testing.T, g *gateway) {
	t.Helper()
	w := newWorkload(t, &p.database, []*gateway{g}, keyedWrites)
	reference := uuid.NewString()
	warm(t, w.fleet, w.keys[:1])
	old := p.leader(t)
	old.isolate()
	t.Cleanup(old.heal)
	shown := 0 // repeats while the old leader shows the row and takes writes
	asynctest.Eventually(t, "another node leads", func() bool {
		if p.shows(t, old, reference) {
			shown++
		}
		if s := w.try(keyedWrites, w.keys[0], reference); s.status == http.StatusCreated && p.leaderBut(t, old) == nil {
			t.Errorf("201 without a standby:%s", samples{s}.first(1, s.began))
		}
		return p.leaderBut(t, old) != nil
	})
	if shown == 0 {
		t.Error("the old leader never showed the intent in doubt while it took writes, so nothing was tested")
	}
	for range 2 {
		asynctest.Eventually(t, "the intent is recorded", func() bool { return !w.try(keyedWrites, w.keys[0], reference).failed() })
	}
	old.heal()
	asynctest.Eventually(t, "the cluster is whole", func() bool { return p.inSync(t) })
	w.stop()
	w.mustBeStored()
	t.Logf("%d repeats while the old leader showed the intent; %s", shown, w.soFar())
}

// shows reports whether a node takes writes and has the intent.
func (p *patroni) shows(t *testing.T, node *patroniNode, reference string) (shown bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, "postgres://postgres:"+password+"@"+node.address+"/intents")
	if err != nil {
		return false
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, `SELECT NOT pg_is_in_recovery() AND EXISTS (SELECT FROM transfers WHERE reference = $1)`, reference).Scan(&shown)
	return err == nil && shown
}

// startWays starts a core and a gateway for each way to the leader: several hosts in one URL, PgBouncer before HAProxy, and one address that
// is moved by hand, as a name in DNS is.
func (p *patroni) startWays(t *testing.T, moving *faultproxy.Proxy) (fleet []*gateway) {
	t.Helper()
	redis := startRedis(t).url()
	hosts, _, _ := strings.Cut(p.url, "?")
	for _, url := range []string{hosts, p.startPooled(t), "postgres://postgres:" + password + "@" + moving.Address + "/intents"} {
		core := startCores(t, &database{url: url}, 1, "CORE_STATEMENT_TIMEOUT=1s")[0]
		fleet = append(fleet, startGateways(t, 1, fleetConfig{redis: redis, core: core.URL, env: patient("GATEWAY_CORE_TIMEOUT=2s")})...)
	}
	return fleet
}

// startPooled starts HAProxy and PgBouncer with the configurations that are shipped, and returns the URL through both.
func (p *patroni) startPooled(t *testing.T) (url string) {
	t.Helper()
	address := freeport.Address(t)
	replacements := map[string]string{"bind 127.0.0.1:5432": "bind " + address}
	for n, node := range p.nodes {
		_, rest, _ := strings.Cut(strings.TrimPrefix(node.rest, "http://"), ":")
		replacements[fmt.Sprintf("10.0.0.1%d:5432 check port 8008", n+1)] = node.address + " check port " + rest
	}
	system.StartHAProxy(t, system.Shipped(t, "patroni/haproxy.cfg", replacements))
	host, port, _ := strings.Cut(address, ":")
	pooler, err := embedded.StartPgBouncer(t.Context(), embedded.PgBouncerConfig{
		Server: fmt.Sprintf("host=%s port=%s user=postgres password=%s", host, port, password), Settings: poolerSettings(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pooler.Stop() })
	return fmt.Sprintf("postgres://postgres@/intents?host=%s&port=%d", pooler.Dir, pooler.Port)
}

// poolerSettings are the shipped settings of PgBouncer, without those that a test's own has.
func poolerSettings(t *testing.T) (settings []string) {
	t.Helper()
	_, section, _ := strings.Cut(system.Shipped(t, "patroni/pgbouncer.ini", nil), "[pgbouncer]\n")
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "listen_") && !strings.HasPrefix(line, "auth_") && !strings.HasPrefix(line, ";") {
			settings = append(settings, line)
		}
	}
	return settings
}

// awaitEach waits until a keyed write that began after a moment has succeeded at each of these gateways, and returns how long that took.
func (w *workload) awaitEach(t *testing.T, fleet []*gateway, from time.Time) time.Duration {
	t.Helper()
	asynctest.Eventually(t, "writes succeed at each gateway", func() bool {
		succeeded := map[*gateway]bool{}
		for _, s := range w.soFar() {
			if s.kind == keyedWrites && !s.failed() && !s.began.Before(from) {
				succeeded[w.fleet[s.gateway]] = true
			}
		}
		for _, g := range fleet {
			if !succeeded[g] {
				return false
			}
		}
		return true
	})
	return time.Since(from)
}

// await503 waits until a gateway has answered a write with 503, which says that its core waits for a leader.
func await503(t *testing.T, w *workload, gateway int) {
	t.Helper()
	from := time.Now()
	asynctest.Eventually(t, "a write is answered with 503", func() bool {
		return len(w.soFar().filter(func(s sample) bool {
			return s.gateway == gateway && s.kind != reads && s.status == http.StatusServiceUnavailable && s.began.After(from)
		})) > 0
	})
}
