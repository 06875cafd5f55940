package faults_test

import (
	"encoding/binary"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/embedded"
)

// clock is the wall clock of programs: the real time and an offset that changes while they run.
type clock struct {
	file string
	env  []string
}

// newClock is one for programs in C.
func newClock(t *testing.T) *clock {
	t.Helper()
	if runtime.GOOS != "linux" {
		system.Skip(t, "a changed clock needs Linux")
	}
	compiler := system.FindProgram(t, "a changed clock needs a C compiler", "cc")
	c := newOffset(t)
	library := filepath.Join(filepath.Dir(c.file), "clock.so")
	if err := embedded.Run(t.Context(), embedded.Command{
		Path: compiler, Args: []string{"-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, filepath.Join("testdata", "clock.c")},
	}); err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env, "LD_PRELOAD="+library)
	return c
}

// newOffset is one for programs that look into the file themselves.
func newOffset(t *testing.T) *clock {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Dir(dir)} { // Postgres runs as another user
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := &clock{file: filepath.Join(dir, "offset")}
	c.env = []string{"CLOCK_OFFSET_FILE=" + c.file}
	c.set(t, 0)
	return c
}

// set changes the time by so much from the real one.
func (c *clock) set(t *testing.T, offset time.Duration) {
	t.Helper()
	file, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := binary.Write(file, binary.NativeEndian, int64(offset/time.Second)); err != nil {
		t.Fatal(err)
	}
}

// jumps are the offsets that a clock is set to in turn.
var jumps = []time.Duration{time.Hour, -time.Hour, 0}

// The clock of Redis jumps by hours: no client is told to wait longer than it takes a bucket to fill up, no request fails, and a key
// below its limit is refused once or twice at most.
func TestClock_Redis(t *testing.T) {
	t.Parallel()
	clock := newClock(t)
	redis := startRedis(t, clock.env...)
	fleet := startGateways(t, 2, fleetConfig{redis: redis.url(), env: patient()})
	keys := newKeys(t, honestKeys)
	warm(t, fleet, keys)
	l := startLoad(t, fleet, stream{honest, keys, honestRate}, stream{greedy, newKeys(t, 1), greedyRate})
	sleep(t, healthy)
	const thrice = 3*honestKeys*time.Second/honestRate + settling // each key makes three requests
	var jumped []time.Time
	for _, offset := range jumps {
		jumped = append(jumped, time.Now())
		clock.set(t, offset)
		sleep(t, thrice)
	}
	all := l.stop()
	all.mustBeSound(t)
	for _, one := range all {
		switch seconds, err := strconv.Atoi(one.retryAfter); {
		case one.status == http.StatusOK:
		case one.status != http.StatusTooManyRequests:
			t.Fatalf("answered %d %s", one.status, one.fault)
		case err != nil || seconds < 1 || seconds > 60:
			t.Fatalf("Retry-After: %s", one.retryAfter)
		}
	}
	for _, from := range jumped {
		refused := map[string]int{}
		for _, one := range all.of(honest).between(from, from.Add(thrice)) {
			if one.status == http.StatusTooManyRequests {
				refused[one.key]++
			}
		}
		for _, times := range refused {
			if times > 2 {
				t.Errorf("a key below its limit was refused %d times after a jump", times)
			}
		}
	}
	// A clock that jumps ahead refills every bucket.
	if over := all.overAdmission(); over > len(jumps)*burst {
		t.Errorf("%d requests of one key beyond the limit", over)
	}
}

// The clock of Postgres jumps by hours under load: no request fails, and the list keeps one order.
func TestClock_Postgres(t *testing.T) {
	t.Parallel()
	clock := newClock(t)
	db := startDatabase(t, embedded.PostgresConfig{Ephemeral: true, Env: clock.env}) // a disk that stalls would fail requests, as no clock may
	_, fleet := startServices(t, db)
	w := newWorkload(t, db, fleet, reads, writes, keyedWrites)
	w.start(members)
	w.awaitMore(20)
	began := time.Now()
	for _, offset := range jumps {
		clock.set(t, offset)
		w.awaitMore(20)
		sleep(t, time.Second)
	}
	w.mustSucceed(began).mustBeSound(t)
	w.mustList()
}
