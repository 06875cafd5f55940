package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/embedded"
)

// The clocks of two cores and two gateways are an hour wrong, each pair in both directions, and change places under load: nothing
// fails, the list keeps one order, and deadlines, ids and the expiry of keys go by the clock of Postgres.
func TestClock_Services(t *testing.T) {
	t.Parallel()
	binaries := binariesWithClocks(t)
	db := startDatabase(t, embedded.PostgresConfig{})
	ahead, behind := newOffset(t), newOffset(t)
	ahead.set(t, time.Hour)
	behind.set(t, -time.Hour)
	var servers []*coreServer
	for _, clock := range []*clock{ahead, behind} {
		server := newCoreServerOn(t, db)
		server.binaries, server.env = binaries, append(server.env, clock.env...)
		server.start(t)
		servers = append(servers, server)
	}
	redis := startRedis(t)
	var fleet []*gateway
	for n, clock := range []*clock{ahead, behind} {
		servers[n].awaitReady(t)
		fleet = append(fleet, startGateways(t, 1, fleetConfig{
			redis: redis.address, core: urlsOf(servers), binaries: binaries, env: unhurried(clock.env...),
		})...)
	}
	c := newWorkloadOn(t, db, fleet, reads, writes, keyedWrites)
	c.set(members)
	pass(t, time.Second)
	struck := time.Now()
	for _, offsets := range [][2]time.Duration{{time.Hour, -time.Hour}, {-time.Hour, time.Hour}, {0, 0}} {
		ahead.set(t, offsets[0])
		behind.set(t, offsets[1])
		for _, g := range fleet {
			g.mustRefuseBriefly(t, db.newKeys(t, 1)[0])
			g.mustEndKey(t, db, db.newKeys(t, 1)[0])
		}
	}
	all := c.stop()
	untold := c.mustHaveKept(t)
	c.mustList(t)
	db.mustKeepTime(t)
	outcomes.tell(t, outcome{
		Fault: "clocks of cores and gateways +1 h, -1 h, right", Gateways: len(fleet), Requests: len(all.hitBy(struck)),
		Errors: len(all.failed()), OverAdmission: -1, AddedP99: -1, Recovery: -1,
		Note: fmt.Sprintf("%d intents kept once and listed in one order, their deadlines and ids by the clock of Postgres", len(c.acknowledged)),
	})
	if failed := all.failed(); len(failed) > 0 || untold > 0 {
		t.Errorf("%d requests failed, %d intents are stored that nobody was told of:%s", len(failed), untold, failed.first(5, struck))
	}
	all.mustBeSound(t)
}

// mustRefuseBriefly uses a new key up and holds the refusal to the time that a bucket needs for one request more.
func (g *gateway) mustRefuseBriefly(t *testing.T, key string) {
	t.Helper()
	for range 2 * burst {
		status, header := g.ask(t, key)
		switch seconds, err := strconv.Atoi(header.Get("Retry-After")); {
		case status == http.StatusOK:
		case status != http.StatusTooManyRequests:
			t.Fatalf("a new key was answered %d", status)
		case err != nil || seconds < 1 || seconds > 2:
			t.Fatalf("Retry-After: %s", header.Get("Retry-After"))
		default:
			return
		}
	}
	t.Errorf("%d requests of a key were answered at once", 2*burst)
}

// mustEndKey gives a key some seconds by the clock of Postgres, and sees it work until they are over and no longer.
func (g *gateway) mustEndKey(t *testing.T, db *database, key string) {
	t.Helper()
	const lifetime = 2500 * time.Millisecond
	db.execute(t, `UPDATE api_keys SET expires_at = clock_timestamp() + $1::interval WHERE hash = sha256(convert_to($2, 'UTF8'))`,
		fmt.Sprintf("%d ms", lifetime.Milliseconds()), key)
	began := time.Now()
	for {
		status, _ := g.ask(t, key)
		switch age := time.Since(began); {
		// Gateways know the time left to a second, and never take it for longer than it is.
		case status == http.StatusForbidden && age > lifetime-1500*time.Millisecond:
			return
		case status != http.StatusOK || age > within(lifetime+500*time.Millisecond):
			t.Errorf("a key that lives for %s was answered %d after %s", lifetime, status, millis(age))
			return
		}
		pass(t, 100*time.Millisecond)
	}
}

// ask asks for the newest intent.
func (g *gateway) ask(t *testing.T, key string) (status int, header http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/v2/transfers?limit=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", key)
	response, err := direct.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode, response.Header
}

// mustKeepTime holds every intent's deadline and id to the time it was made at by Postgres, and its status to the deadline, which
// is an hour away.
func (d *database) mustKeepTime(t *testing.T) {
	t.Helper()
	d.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT id, status, created_at, deadline FROM transfers`)
		if err != nil {
			return err
		}
		var id uuid.UUID
		var status string
		var created, deadline time.Time
		_, err = pgx.ForEachRow(rows, []any{&id, &status, &created, &deadline}, func() error {
			made := time.Unix(id.Time().UnixTime())
			if wait := created.Sub(made).Abs(); wait > 10*time.Second {
				t.Errorf("%s was made at %s and its id at %s", id, created, made)
			}
			if lifetime := deadline.Sub(created); (lifetime - time.Hour).Abs() > 10*time.Second {
				t.Errorf("%s lives for %s", id, lifetime)
			}
			if status != "created" {
				t.Errorf("%s is %s", id, status)
			}
			return nil
		})
		return err
	})
}

// binariesWithClocks is where this version's programs are, built so that the wall clock of each may be set by newOffset. Go reads
// the clock past the C library, so the time package has it.
func binariesWithClocks(t *testing.T) string {
	t.Helper()
	if !full() || runtime.GOOS != "linux" {
		t.Skip("builds the programs with another time package, on Linux: set CI=true, or -args -strict")
	}
	root, err := stack.FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	var goroot string
	if err := embedded.Run(t.Context(), embedded.Command{
		Path: "go", Args: []string{"env", "GOROOT"}, Output: func(line string) { goroot = line },
	}); err != nil {
		t.Fatal(err)
	}
	standard := filepath.Join(goroot, "src", "time", "time.go")
	source, err := os.ReadFile(standard)
	if err != nil {
		t.Fatal(err)
	}
	const reading = "\tsec, nsec, mono := runtimeNow()\n"
	changed := strings.Replace(string(source), reading, reading+"\tsec += *clockOffset\n", 1)
	if changed == string(source) {
		t.Fatalf("%s does not read the clock as it did", standard)
	}
	dir := t.TempDir()
	added, err := filepath.Abs(filepath.Join("testdata", "clock.go"))
	if err != nil {
		t.Fatal(err)
	}
	replacing := filepath.Join(dir, "time.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		standard: replacing, filepath.Join(filepath.Dir(standard), "clock_offset.go"): added,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{replacing: []byte(changed), filepath.Join(dir, "overlay.json"): overlay} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := embedded.Run(t.Context(), embedded.Command{
		Path: "go", Args: []string{"build", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"), "-o", dir, "./core", "./gateway"}, Dir: root,
	}); err != nil {
		t.Fatal(err)
	}
	return dir
}
