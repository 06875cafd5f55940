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

	"intents.internal/core/store"
	"intents.internal/core/store/pgtest"
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
func lookUp[T any](t *testing.T, store *store.Rooms, query string) (value T) {
	t.Helper()
	if err := store.Pool().QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func TestUsage(t *testing.T) {
	t.Parallel()
	url := on(pgtest.Database(t))
	for _, c := range []struct{ args, says string }{
		{"", "name a command"},
		{"frobnicate", `there is no command "frobnicate"`},
		{"Serve", `there is no command "Serve"`},
		{"serve now", "serve takes no further words"},
		{"watch eip155:1", "watch takes no further words"},
		{"migrate down", "the command takes other words"},
		{"chains", "use: core chains import FILE"},
		{"chains import", "use: core chains import FILE"},
		{"chains export x", "use: core chains import FILE"},
		{"chains check a b", "use: core chains import FILE"},
		{"chains resume", "use: core chains import FILE"},
		{"chains resume eip155:1", "use: core chains import FILE"},
		{"chains resume --from 1", `"--from" must be a chain id such as eip155:1; use: core chains import FILE`},
		{"chains resume eip155:1 --from -1", `invalid value "-1" for flag -from`},
		{"chains resume eip155:1 --to 1", "flag provided but not defined: -to"},
		{"tokens import a b", "use: core tokens import [--source NAME] [--license SPDX]"},
		{"tokens import --licence MIT a", "flag provided but not defined: -licence; use: core tokens import"},
		{"tokens import a --license M!T", "license must be an SPDX license expression"},
		{"tokens sources all", "use: core tokens import"},
		{"accounts", "use: core accounts create EMAIL [NAME], or core accounts reset-password|reset-link|verify-email|disable|enable|delete EMAIL"},
		{"accounts disable", "use: core accounts create EMAIL [NAME]"},
		{"accounts delete ann@example.com Ann", "use: core accounts create EMAIL [NAME]"},
		{"accounts create ann@example.com Ann Lee", "use: core accounts create EMAIL [NAME]"},
		{"accounts ban ann@example.com", `there is no command accounts "ban"`},
	} {
		got := core(t, "", url, strings.Fields(c.args)...)
		if got.Code != 2 || got.Out != "" || !strings.HasPrefix(got.ErrOut, "core: "+c.says) || !strings.Contains(got.ErrOut, "core serve ") {
			t.Errorf("core %s: %+v", c.args, got)
		}
	}
	for _, help := range []string{"help", "-h", "--help"} {
		if got := core(t, "", nil, help); got.Code != 0 || got.ErrOut != "" || !strings.Contains(got.Out, "core migrate ") {
			t.Errorf("core %s: %+v", help, got)
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
