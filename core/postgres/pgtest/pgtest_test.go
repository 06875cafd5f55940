package pgtest_test

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"intents.internal/core/postgres"
	"intents.internal/core/postgres/pgtest"
)

// roleVariable makes the test binary play another one, which prints its database's name and ends or waits to be killed.
const roleVariable = "PGTEST_ROLE"

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestRole(t *testing.T) {
	t.Parallel()
	role := os.Getenv(roleVariable)
	if role == "" {
		return
	}
	made, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("database", made.Path[1:])
	if role == "wait" {
		<-time.After(time.Minute) // the test kills it long before
	}
}

// play starts another test binary on this one's server and returns it with the name of its database.
func play(t *testing.T, server, role string, environment ...string) (database string, process *exec.Cmd) {
	t.Helper()
	process = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRole$", "-test.v")
	process.Env = append(append(os.Environ(), roleVariable+"="+role, "TEST_DATABASE_URL="+server), environment...)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found, ok := strings.CutPrefix(lines.Text(), "database "); ok {
			return found, process
		}
		t.Log(lines.Text())
	}
	t.Fatal("the other test binary has made no database")
	return "", nil
}

func TestKilledRunsAreSweptAndLivingOnesAreNot(t *testing.T) {
	t.Parallel()
	server := pgtest.Unmigrated(t)
	store := pgtest.Open(t, server)
	here := pgtest.Database(t)
	exists := func(name string) bool {
		t.Helper()
		var found bool
		err := store.Pool().QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&found)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}

	killed, process := play(t, server, "wait")
	if !exists(killed) {
		t.Fatalf("%s is not there", killed)
	}
	living, second := play(t, server, "wait")
	if !exists(killed) || !exists(living) {
		t.Error("a run has dropped a database of another that lives")
	}
	// kill kills a run and lets others sweep its databases, once the server has noticed the loss of its connections.
	kill := func(process *exec.Cmd, left string) {
		t.Helper()
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = process.Wait()
		for range 50 {
			own, sweeper := play(t, server, "end")
			if err := sweeper.Wait(); err != nil {
				t.Fatal(err)
			}
			if exists(own) {
				t.Errorf("%s of a run that has ended is still there", own)
			}
			if !exists(left) {
				return
			}
		}
		t.Fatalf("%s of a killed run is still there", left)
	}
	kill(process, killed)
	if !exists(living) {
		t.Errorf("%s of a living run is gone", living)
	}
	if err := pgtest.Open(t, here).CheckMigrated(t.Context()); err != nil {
		t.Errorf("this run's own database: %v", err)
	}
	kill(second, living)
}

// The database that a shell names for something else is not connected to.
func TestDatabaseOfTheShell(t *testing.T) {
	t.Parallel()
	gate := pgtest.NewGate(t, pgtest.Unmigrated(t))
	gate.Shut()
	_, process := play(t, "", "end", "DATABASE_URL="+gate.URL)
	if err := process.Wait(); err != nil {
		t.Error(err)
	}
	if n := gate.Refused(); n > 0 {
		t.Errorf("%d connections to DATABASE_URL", n)
	}
}

func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	one, other := pgtest.New(t), pgtest.New(t)
	pgtest.LoadRegistry(t, one)
	for store, want := range map[*postgres.Store]int{one: 5, other: 0} {
		snapshot, err := store.Registry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := len(snapshot.Chains); got != want {
			t.Errorf("%d chains, want %d", got, want)
		}
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	gate := pgtest.NewGate(t, pgtest.Database(t))
	store := pgtest.Open(t, gate.URL)
	for range 2 {
		if err := store.Ping(t.Context()); err != nil {
			t.Fatalf("open: %v", err)
		}
		gate.Shut()
		if err := store.Ping(t.Context()); err == nil {
			t.Fatal("shut: the database answers")
		}
		gate.Open()
	}
	if err := pgtest.Open(t, pgtest.Closed(t)).Ping(t.Context()); err == nil {
		t.Error("a database answers where nothing listens")
	}
}
