package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
)

// binary is the program under test.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "core-test-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "core")
	if out, err := exec.Command("go", "build", "-o", binary, "..").CombinedOutput(); err != nil { //nolint:noctx // go test bounds it
		fmt.Fprintf(os.Stderr, "build core: %v\n%s", err, out)
		os.Exit(1)
	}
	pgtest.Main(cleaning{m, dir})
}

// cleaning removes the binary after the tests.
type cleaning struct {
	*testing.M
	dir string
}

func (c cleaning) Run() int {
	defer func() { _ = os.RemoveAll(c.dir) }()
	return c.M.Run()
}

// result is how a command ended.
type result struct {
	Code        int
	Out, ErrOut string
}

// core runs a command to its end with only these settings, as NAME=value.
func core(t *testing.T, input string, settings []string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = settings, strings.NewReader(input), &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// on are the settings for a database.
func on(databaseURL string) []string { return []string{"CORE_DATABASE_URL=" + databaseURL} }

// lookUp reads one value.
func lookUp[T any](t *testing.T, store *rooms.Rooms, query string) (value T) {
	t.Helper()
	if err := store.Pool().QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// Misuse is told with the usage and its own exit status; TestRun_Usage has what counts as misuse.
func TestUsage(t *testing.T) {
	t.Parallel()
	got := core(t, "", on(pgtest.Database(t)), "accounts", "ban", "ann@example.com")
	if got.Code != 2 || got.Out != "" || !strings.HasPrefix(got.ErrOut, `core: there is no command accounts "ban"`) ||
		!strings.Contains(got.ErrOut, "core serve ") {
		t.Errorf("%+v", got)
	}
	for _, help := range []string{"help", "-h", "--help", "serve -h", "accounts create --help", "chains --help"} {
		if got := core(t, "", nil, strings.Fields(help)...); got.Code != 0 || got.ErrOut != "" || !strings.Contains(got.Out, "core migrate ") {
			t.Errorf("core %s: %+v", help, got)
		}
	}
	for _, version := range []string{"version", "--version"} {
		if got := core(t, "", nil, version); got.Code != 0 || got.ErrOut != "" || !strings.HasPrefix(got.Out, "core ") || strings.Count(got.Out, "\n") != 1 {
			t.Errorf("core %s: %+v", version, got)
		}
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	url := pgtest.Unmigrated(t)
	first := core(t, "", on(url), "migrate")
	if first.Code != 0 || !strings.HasPrefix(first.Out, "applied 2") || first.ErrOut != "" {
		t.Errorf("first: %+v", first)
	}
	if again := core(t, "", on(url), "migrate"); again != (result{0, "the database is up to date\n", ""}) {
		t.Errorf("again: %+v", again)
	}
	if err := pgtest.Open(t, url).CheckMigrated(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCommands_DatabaseUnreachable(t *testing.T) {
	t.Parallel()
	url := strings.Replace(pgtest.Closed(t), "intents@", "intents:hunter2@", 1)
	for _, args := range [][]string{
		{"migrate"}, {"serve"}, {"accounts", "disable", "ann@example.com"}, {"chains", "import", "-"}, {"tokens", "import", "-"},
	} {
		got := core(t, string(pgtest.ChainsJSON), append(on(url), "CORE_GATEWAY_SECRET="+gatewaySecret), args...)
		if got.Code != 1 || !strings.Contains(got.ErrOut, "refused") || strings.Count(got.ErrOut, "core: ") != 1 {
			t.Errorf("core %s: %+v", args, got)
		}
		if strings.Contains(got.Out+got.ErrOut, "hunter2") {
			t.Errorf("core %s tells the password: %+v", args, got)
		}
	}
}

func TestChains_List(t *testing.T) {
	t.Parallel()
	database := on(pgtest.Database(t))
	if got := core(t, string(pgtest.ChainsJSON), database, "chains", "import", "-"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	got := core(t, "", database, "chains", "list")
	lines := strings.Split(got.Out, "\n")
	if got.Code != 0 || got.ErrOut != "" || !strings.HasPrefix(lines[0], "chain ") || !strings.Contains(got.Out, "\neip155:84532 ") ||
		!strings.Contains(got.Out, " https://sepolia.etherscan.io\n") {
		t.Errorf("%+v", got)
	}
}
