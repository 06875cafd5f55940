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

// The clocks of two cores and two gateways are an hour wrong, each pair in both directions, and change places under load: no request
// fails, the list keeps one order, and deadlines, ids and the expiry of keys follow the clock of Postgres.
func TestClock_Services(t *testing.T) {
	t.Parallel()
	binaries := binariesWithClocks(t)
	db := startDatabase(t, embedded.PostgresConfig{Ephemeral: true})
	clocks := []*clock{newOffset(t), newOffset(t)}
	clocks[0].set(t, time.Hour)
	clocks[1].set(t, -time.Hour)
	var cores []*coreServer
	for _, clock := range clocks {
		env := append([]string{"CORE_DATABASE_CONNECTIONS=20"}, clock.env...) // the database is the test's own
		cores = append(cores, startCoresOf(t, binaries, db, 1, env...)...)
	}
	redis := startRedis(t)
	var fleet []*gateway
	for _, clock := range clocks {
		fleet = append(fleet, startGateways(t, 1, fleetConfig{redis: redis.url(), core: urlsOf(cores), binaries: binaries, env: patient(clock.env...)})...)
	}
	w := newWorkload(t, db, fleet, reads, writes, keyedWrites)
	w.start(members)
	w.awaitMore(20)
	began := time.Now()
	for _, offsets := range [][2]time.Duration{{time.Hour, -time.Hour}, {-time.Hour, time.Hour}, {0, 0}} {
		for n, offset := range offsets {
			clocks[n].set(t, offset)
		}
		for _, g := range fleet {
			g.mustRefuseBriefly(t, db.newKeys(t, 1)[0])
			g.mustEndKey(t, db, db.newKeys(t, 1)[0])
		}
	}
	w.mustSucceed(began).mustBeSound(t)
	w.mustList()
	db.mustKeepTime(t)
}

// mustRefuseBriefly exhausts a new key and checks that the refusal names the time in which a bucket earns one request.
func (g *gateway) mustRefuseBriefly(t *testing.T, key string) {
	t.Helper()
	for range 2 * burst {
		one := sample{key: key}
		g.get(&one, direct)
		switch seconds, err := strconv.Atoi(one.retryAfter); {
		case one.status == http.StatusOK:
		case one.status != http.StatusTooManyRequests:
			t.Fatalf("a new key was answered %d %s", one.status, one.fault)
		case err != nil || seconds < 1 || seconds > 2:
			t.Fatalf("Retry-After: %s", one.retryAfter)
		default:
			return
		}
	}
	t.Errorf("%d requests of a key were answered at once", 2*burst)
}

// mustEndKey has a key expire in some seconds by the clock of Postgres, and checks that it works until then.
func (g *gateway) mustEndKey(t *testing.T, db *database, key string) {
	t.Helper()
	const lifetime = 2500 * time.Millisecond
	db.execute(t, `UPDATE api_keys SET expires_at = clock_timestamp() + $1::interval WHERE hash = sha256(convert_to($2, 'UTF8'))`,
		fmt.Sprintf("%d ms", lifetime.Milliseconds()), key)
	began := time.Now()
	for {
		one := sample{key: key}
		g.get(&one, direct)
		switch age := time.Since(began); {
		// Gateways know the time left to a second, and never take it for longer than it is.
		case one.status == http.StatusForbidden && age > lifetime-1500*time.Millisecond:
			return
		case one.status != http.StatusOK || age > within(lifetime+500*time.Millisecond):
			t.Errorf("a key that lives for %s was answered %d after %s", lifetime, one.status, age)
			return
		}
		sleep(t, 100*time.Millisecond)
	}
}

// mustKeepTime checks that every intent's deadline and id follow the time of its creation by Postgres, and that none has expired: the
// deadline is in an hour.
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

// binariesWithClocks builds the programs so that newOffset sets their wall clocks. Go does not read the clock by the C library, so the
// offset is in the time package.
func binariesWithClocks(t *testing.T) string {
	t.Helper()
	if !*strict && os.Getenv("CI") != "true" || runtime.GOOS != "linux" {
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
