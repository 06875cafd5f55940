package screening_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/screening"
	"intents.internal/core/screening/list"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

// screen is a Screen of files in a directory of the test's own.
type screen struct {
	*screening.Screen
	t       *testing.T
	dir     string
	store   *rooms.Rooms
	log     *asynctest.Buffer
	metrics *prometheus.Registry
	paths   []string
}

// address is the n-th of the test's addresses.
func address(n int) string { return fmt.Sprintf("0x%040x", n) }

// lines are the addresses from a number to before another, one a line.
func lines(from, to int) string {
	var text strings.Builder
	for n := from; n < to; n++ {
		fmt.Fprintln(&text, address(n))
	}
	return text.String()
}

// open opens the list of files a.txt with 10 addresses from 100 on and b.txt with one.
func open(t *testing.T) *screen {
	t.Helper()
	s := &screen{t: t, dir: t.TempDir(), store: pgtest.New(t), log: &asynctest.Buffer{}, metrics: prometheus.NewRegistry()}
	s.paths = []string{filepath.Join(s.dir, "a.txt"), filepath.Join(s.dir, "b.txt")}
	s.write("a.txt", lines(100, 110))
	s.write("b.txt", address(200))
	if err := s.reopen(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *screen) reopen() (err error) {
	s.metrics = prometheus.NewRegistry()
	s.Screen, err = screening.Open(s.t.Context(), screening.Config{
		Store: s.store.Screening, Paths: s.paths, MaxAge: time.Hour, Log: telemetry.NewLogger(s.log, "core"), Metrics: s.metrics,
	})
	return err
}

// write writes a file that has been left alone for a while.
func (s *screen) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	pgtest.Must(s.t, os.WriteFile(path, []byte(text), 0o600))
	s.settle(path)
}

var modified atomic.Int64

// settle makes a file one that was written some time ago, at another time than any other.
func (s *screen) settle(path string) {
	s.t.Helper()
	at := time.Now().Add(-time.Hour).Add(time.Duration(modified.Add(1)) * time.Second)
	pgtest.Must(s.t, os.Chtimes(path, at, at))
}

func (s *screen) lists(n int) bool {
	account := caip.AccountID{Chain: caip.EIP155Chain(1), Address: address(n)}
	return s.Check(screening.AtCreation, network.Live, account, caip.AccountID{}) != nil
}

// want holds the list to the addresses of both files, and the log and the metrics to the reloads that failed.
func (s *screen) want(what string, a, b bool, failures int) {
	s.t.Helper()
	if s.lists(100) != a || s.lists(200) != b {
		s.t.Errorf("%s: listed %t and %t", what, s.lists(100), s.lists(200))
	}
	logged := strings.Count(s.log.String(), "screening list is not reloaded")
	counted := int(metricstest.Sum(s.t, s.metrics, "intents_core_screening_reload_failures_total"))
	if logged != failures || counted != failures {
		s.t.Errorf("%s: %d failures are logged and %d counted, want %d:\n%s", what, logged, counted, failures, s.log)
	}
}

func TestScreen_Poll(t *testing.T) {
	t.Parallel()
	const ok, kept = 0, 1
	for name, c := range map[string]struct {
		change   func(*screen)
		a, b     bool
		failures int
		says     string
	}{
		"nothing":      {func(*screen) {}, true, true, ok, ""},
		"growth":       {func(s *screen) { s.write("a.txt", lines(90, 300)) }, true, true, ok, ""},
		"another file": {func(s *screen) { s.write("b.txt", address(201)) }, true, false, ok, ""},
		"half":         {func(s *screen) { s.write("a.txt", lines(105, 110)) }, false, true, ok, ""},
		"an exception": {func(s *screen) { s.write("b.txt", "!"+address(100)+" ticket 4711") }, false, false, ok, ""},

		"40 percent": {func(s *screen) { s.write("a.txt", lines(106, 110)) }, true, true, kept, `/a.txt","line":0,"error":"has less than half of the entries that it had`},
		"empty":      {func(s *screen) { s.write("a.txt", "# none\n") }, true, true, kept, `/a.txt","line":0,"error":"has less than half`},
		"removed":    {func(s *screen) { pgtest.Must(t, os.Remove(s.paths[0])) }, true, true, kept, `/a.txt","line":0,"error":"cannot be read: no such file or directory"`},
		"a directory": {func(s *screen) {
			pgtest.Must(t, os.Remove(s.paths[0]))
			pgtest.Must(t, os.Mkdir(s.paths[0], 0o700))
			s.settle(s.paths[0])
		}, true, true, kept, "no regular file"},
		"malformed":             {func(s *screen) { s.write("a.txt", lines(100, 120)+"0xbad") }, true, true, kept, `/a.txt","line":21,"error":"must be an address`},
		"one of two":            {func(s *screen) { s.write("a.txt", lines(101, 120)); s.write("b.txt", "0xbad") }, true, true, kept, `/b.txt","line":1,`},
		"cut off while written": {func(s *screen) { s.write("a.txt", lines(100, 108)+address(108)[:20]) }, true, true, kept, `/a.txt","line":9,`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.t = t
			c.change(s)
			for range 2 { // the same fault is told once
				if s.Poll(t.Context()) {
					t.Error("the files are not settled")
				}
			}
			s.want(name, c.a, c.b, c.failures)
			log := s.log.String()
			if !strings.Contains(log, c.says) || strings.Contains(log, "0xbad") || strings.Contains(log, address(108)[:20]) {
				t.Errorf("the log does not say %q:\n%s", c.says, log)
			}
			if got := metricstest.Sum(t, s.metrics, "intents_core_screening_reload_failed"); int(got) != c.failures {
				t.Errorf("reload_failed is %v", got)
			}
		})
	}
}

// A HUP reads files again that a poll would not, and tells the fault again.
func TestScreen_Reload(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.write("a.txt", "0x")
	s.Poll(t.Context())
	s.Reload(t.Context())
	s.want("after a HUP", true, true, 2)
	s.write("a.txt", lines(101, 111))
	s.Reload(t.Context())
	s.want("repaired", false, true, 2)
	if got := metricstest.Sum(t, s.metrics, "intents_core_screening_reload_failed"); got != 0 {
		t.Errorf("reload_failed is %v", got)
	}
}

// A slow writer that has written more than half, whole lines, is not believed until it has left the file alone.
func TestScreen_Poll_SlowWriter(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.paths[0]
	pgtest.Must(t, os.WriteFile(path, []byte(lines(101, 107)), 0o600))
	if !s.Poll(t.Context()) {
		t.Error("a file that was written just now is read")
	}
	s.want("being written", true, true, 0)
	pgtest.Must(t, os.WriteFile(path, []byte(lines(101, 120)), 0o600))
	s.settle(path)
	s.Poll(t.Context())
	s.want("written", false, true, 0)
}

// A config map swaps a link to the directory of its files.
func TestScreen_Poll_ConfigMap(t *testing.T) {
	t.Parallel()
	s := open(t)
	for n, text := range []string{lines(100, 110), lines(101, 111)} {
		version := filepath.Join(s.dir, fmt.Sprintf("..version%d", n))
		pgtest.Must(t, os.Mkdir(version, 0o700))
		pgtest.Must(t, os.WriteFile(filepath.Join(version, "list.txt"), []byte(text), 0o600))
		s.settle(filepath.Join(version, "list.txt"))
	}
	swap := func(n int) {
		link := filepath.Join(s.dir, "..data_tmp")
		pgtest.Must(t, os.Symlink(fmt.Sprintf("..version%d", n), link))
		pgtest.Must(t, os.Rename(link, filepath.Join(s.dir, "..data")))
	}
	swap(0)
	file := filepath.Join(s.dir, "list.txt")
	pgtest.Must(t, os.Symlink(filepath.Join("..data", "list.txt"), file))
	s.paths[0] = file
	pgtest.Must(t, s.reopen())
	s.want("before", true, true, 0)
	swap(1)
	s.Poll(t.Context())
	s.want("after", false, true, 0)
}

// The operator's marker lets a smaller file in on a core that has refused it, without a HUP, and an empty one at a start.
func TestScreen_Poll_Accepted(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, text := range []string{lines(106, 110), "# nothing left\n"} {
		s.write("a.txt", text)
		s.Poll(t.Context())
		if s.lists(107) != true {
			t.Errorf("%q is taken", text)
		}
		file, err := list.Read(s.paths[0])
		pgtest.Must(t, err)
		pgtest.Must(t, s.store.Screening.Accept(t.Context(), file.SHA256))
		s.Poll(t.Context())
		if s.lists(100) || s.lists(107) != (file.Entries > 0) {
			t.Errorf("%q is not taken", text)
		}
	}
	pgtest.Must(t, s.reopen())
	pgtest.Exec(t, s.store, `UPDATE screening_accepted SET accepted_at = now() - interval '25 h'`)
	var fault *list.FaultError
	if err := s.reopen(); !errors.As(err, &fault) || fault.Path != s.paths[0] || !strings.Contains(fault.Reason, "has no entry") {
		t.Errorf("a day later: %v", err)
	}
}

func TestOpen_Faults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                   "a.txt has no entry: name a file with addresses, or leave the file out",
		"# none":             "a.txt has no entry",
		address(1) + "\n0x1": "a.txt line 2 must be an address",
	} {
		s := open(t)
		s.write("a.txt", text)
		if err := s.reopen(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), address(1)) {
			t.Errorf("%q: %v", text, err)
		}
	}
	s := open(t)
	pgtest.Must(t, os.Remove(s.paths[1]))
	if err := s.reopen(); err == nil || !strings.Contains(err.Error(), "b.txt cannot be read: no such file or directory") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// Requests see the list before or the list after, never a part of one.
func TestScreen_ConcurrentSwaps(t *testing.T) {
	t.Parallel()
	s := open(t)
	chain := caip.EIP155Chain(1)
	const pairs = 1000
	even, odd := "", ""
	for n := range pairs {
		even, odd = even+address(1000+2*n+1)+"\n", odd+address(1000+2*n)+"\n"
	}
	s.write("a.txt", even)
	s.Poll(t.Context())
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 20 {
		readers.Go(func() {
			for n := 0; !done.Load(); n++ {
				// One address of each pair is listed in every state: both in one look are never, and never none.
				first, second := address(1000+2*(n%pairs)), address(1000+2*(n%pairs)+1)
				err := s.Check(screening.AtCreation, network.Live, caip.AccountID{Chain: chain, Address: first}, caip.AccountID{Chain: chain, Address: second})
				refused, ok := errors.AsType[*screening.NotAllowedError](err)
				if !ok || len(refused.Paths()) != 1 {
					t.Errorf("of a pair not one is listed: %v", err)
					return
				}
			}
		})
	}
	for n := range 40 {
		s.write("a.txt", []string{odd, even}[n%2])
		s.Poll(t.Context())
	}
	done.Store(true)
	readers.Wait()
	s.want("after", s.lists(100), true, 0)
}
