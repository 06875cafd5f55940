package stack_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"intents.internal/deploy/stack"
)

// fixture is a stack of stand-ins in a directory of its own. They ask no database, so only tests of Postgres itself start one.
type fixture struct {
	t      *testing.T
	config stack.Config
	log    *logBuffer
	broken string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"core", "gateway", "chains"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{t: t, log: &logBuffer{waiting: map[string]chan struct{}{}}, broken: filepath.Join(dir, "broken")}
	f.config = stack.Config{
		Data: filepath.Join(dir, "data"), Listen: "127.0.0.1:0", DatabaseURL: "postgres://stand-in", InProcessRedis: true, Binaries: dir, Log: f.log,
		CoreEnv: []string{"STAND_IN_STATE=" + filepath.Join(dir, "state"), "STAND_IN_BROKEN=" + f.broken},
	}
	if err := os.Mkdir(f.config.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	return f
}

// withPostgres is a fixture whose stack runs Postgres.
func withPostgres(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.config.DatabaseURL, f.config.Ephemeral = "", true
	return f
}

func (f *fixture) start() *stack.Stack {
	f.t.Helper()
	s, err := stack.Start(f.t.Context(), f.config)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			f.t.Error(err)
		}
	})
	return s
}

// run starts and stops the stack.
func (f *fixture) run() stack.Env {
	f.t.Helper()
	s := f.start()
	env := s.Env()
	if err := s.Stop(); err != nil {
		f.t.Fatal(err)
	}
	return env
}

func keysOf(e stack.Env) [4]string {
	return [4]string{e.AccountEmail, e.AccountPassword, e.TestKey, e.LiveKey}
}

func expectError(t *testing.T, config stack.Config, parts ...string) {
	t.Helper()
	s, err := stack.Start(t.Context(), config)
	if err == nil {
		_ = s.Stop()
		t.Fatal("the stack started")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}

func status(t *testing.T, url, key string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// processesNaming lists the processes that have dir in their command lines, where there is a /proc.
func processesNaming(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(dir)) {
			found = append(found, fmt.Sprintf("%s %q", file, text))
		}
	}
	return found
}

// logBuffer keeps what a stack logs.
type logBuffer struct {
	mu      sync.Mutex
	text    strings.Builder
	waiting map[string]chan struct{}
}

func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for part, seen := range b.waiting {
		if bytes.Contains(line, []byte(part)) {
			close(seen)
			delete(b.waiting, part)
		}
	}
	return b.text.Write(line)
}

// await returns a channel that is closed at the next line with part in it.
func (b *logBuffer) await(part string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := make(chan struct{})
	b.waiting[part] = seen
	return seen
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
