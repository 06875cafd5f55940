package faults_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"intents.internal/pkg/testkit/embedded"
)

// clock is the wall clock of programs: the real one and an offset that changes while they run.
type clock struct {
	file string
	env  []string
}

// newClock is one for programs in C.
func newClock(t *testing.T) *clock {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS != "linux" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("a changed clock needs Linux and a C compiler: %v", err)
		}
		t.Skipf("a changed clock needs Linux and a C compiler: %v", err)
	}
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

// The clock of Redis jumps by hours: nobody is told to wait longer than it takes a bucket to fill up, nobody gets an error,
// and a key below its limit goes on after a refusal or two.
func TestClock_Redis(t *testing.T) {
	t.Parallel()
	clock := newClock(t)
	redis := startRedisIn(t, slices.Concat(os.Environ(), clock.env))
	fleet := startGateways(t, 2, fleetConfig{redis: redis.address, env: unhurried()})
	keys := newKeys(t, crowdKeys+1)
	warm(t, fleet, keys[:crowdKeys])
	l := startLoad(t, fleet, stream{keys: keys[:crowdKeys], rate: crowdRate}, stream{keys: keys[crowdKeys:], rate: greedyRate}, controlStream)
	pass(t, healthy)
	const thrice = 3 * crowdKeys * time.Second / crowdRate // each key makes three requests
	began := time.Now()
	var jumped []time.Time
	for _, offset := range jumps {
		jumped = append(jumped, time.Now())
		clock.set(t, offset)
		pass(t, thrice+settling)
	}
	all := l.stop()
	all = all.filter(func(one sample) bool { return one.stream != control })
	all.mustBeSound(t)
	outcomes.tell(t, outcome{
		Fault: "clock of Redis +1 h, -1 h, right", Gateways: 2, Requests: len(all.between(began, time.Now())), Errors: len(all.errors()),
		OverAdmission: all.of(greedy).overAdmission(), AddedP99: -1, Recovery: -1, Note: "Retry-After " + all.retryAfters(),
	})
	for _, one := range all {
		switch seconds, err := strconv.Atoi(one.retryAfter); {
		case one.status == http.StatusOK:
		case one.status != http.StatusTooManyRequests:
			t.Fatalf("answered %d", one.status)
		case err != nil || seconds < 1 || seconds > 60:
			t.Fatalf("Retry-After: %s", one.retryAfter)
		}
	}
	for _, from := range jumped {
		refused := map[string]int{}
		for _, one := range all.of(crowd).between(from, from.Add(thrice+settling)) {
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
	if over := all.of(greedy).overAdmission(); over > len(jumps)*burst {
		t.Errorf("%d requests of one key beyond the limit", over)
	}
}

// retryAfters are the different values of the header.
func (s samples) retryAfters() string {
	var seen []string
	for _, one := range s {
		if one.retryAfter != "" && !slices.Contains(seen, one.retryAfter) {
			seen = append(seen, one.retryAfter)
		}
	}
	slices.Sort(seen)
	return fmt.Sprint(seen)
}

// The clock of Postgres jumps by hours under load: nothing fails, and the list keeps one order.
func TestClock_Postgres(t *testing.T) {
	t.Parallel()
	clock := newClock(t)
	db := startDatabase(t, embedded.PostgresConfig{Env: clock.env})
	_, fleet := startServices(t, db)
	c := newWorkloadOn(t, db, fleet, reads, writes, keyedWrites)
	c.set(members)
	pass(t, time.Second)
	struck := time.Now()
	for _, offset := range jumps {
		clock.set(t, offset)
		pass(t, 1500*time.Millisecond)
	}
	all := c.stop()
	untold := c.mustHaveKept(t)
	c.mustList(t)
	outcomes.tell(t, outcome{
		Fault: "clock of Postgres +1 h, -1 h, right", Gateways: 1, Requests: len(all.hitBy(struck)), Errors: len(all.failed()),
		OverAdmission: -1, AddedP99: -1, Recovery: -1, Note: fmt.Sprintf("%d intents kept once and listed in one order", len(c.acknowledged)),
	})
	if failed := all.failed(); len(failed) > 0 || untold > 0 {
		t.Errorf("%d requests failed, %d intents are stored that nobody was told of:%s", len(failed), untold, failed.first(5, struck))
	}
	all.mustBeSound(t)
}
