package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minMajor is the oldest supported Postgres: the first with xid8 and gen_random_uuid.
const minMajor = 13

// binaries are the programs of a Postgres server.
type binaries struct {
	dir     string
	version string // such as "15.14"
	major   int
	source  string
	env     []string
}

// ErrNoPostgres says that no Postgres was found. Errors that wrap it say what to do.
var ErrNoPostgres = errors.New("no Postgres server found")

// findBinaries returns the first binaries in the order of the package comment. major is the version of existing data that they
// must be able to read, empty for none.
func findBinaries(ctx context.Context, major string, log func(string)) (*binaries, error) {
	if dir := os.Getenv("PG_BIN"); dir != "" {
		found, err := inspect(ctx, dir, "$PG_BIN", nil)
		if err != nil {
			return nil, fmt.Errorf("use the Postgres in $PG_BIN: %w", err)
		}
		return found, found.requireMajor(major)
	}
	var mismatch error
	for _, dir := range binaryDirs() {
		found, err := inspect(ctx, dir, dir, nil)
		if err != nil {
			continue
		}
		if err := found.requireMajor(major); err != nil {
			mismatch = cmp.Or(mismatch, err)
			continue
		}
		return found, nil
	}
	if found, err := fetchedBinaries(ctx); err == nil && found.requireMajor(major) == nil {
		return found, nil
	}
	if mismatch != nil {
		return nil, mismatch
	}
	found, err := fetchBinaries(ctx, log)
	if err != nil {
		return nil, err
	}
	return found, found.requireMajor(major)
}

// binaryDirs are the directories where the binaries may be: those of the commands on PATH, then those of the distributions, the
// newest version first.
func binaryDirs() []string {
	var dirs []string
	for _, command := range []string{"postgres", "pg_ctl", "initdb"} {
		path, err := exec.LookPath(command)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                   // the PostgreSQL project's packages for Red Hat
		"/usr/libexec/postgresql*",           // Alpine
		"/opt/homebrew/opt/postgresql@*/bin", // Homebrew on Apple silicon
		"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
		"/usr/local/pgsql/bin", // built from source
	} {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(parseMajor(b), parseMajor(a)) })
		dirs = append(dirs, found...)
	}
	return dirs
}

var digits = regexp.MustCompile(`\d+`)

func parseMajor(text string) int {
	major, _ := strconv.Atoi(digits.FindString(text))
	return major
}

// inspect runs the server in dir to read its version. libraries are directories with its shared libraries.
func inspect(ctx context.Context, dir, source string, libraries []string) (*binaries, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return nil, fmt.Errorf("find initdb: %w", err)
	}
	found := &binaries{dir: dir, source: source, env: serverEnv(libraries)}
	text, err := output(ctx, Command{Path: filepath.Join(dir, "postgres"), Args: []string{"-V"}, Env: found.env, Dir: "/"})
	if err != nil {
		return nil, err
	}
	_, version, _ := strings.Cut(text, "(PostgreSQL) ")
	version, _, _ = strings.Cut(strings.TrimSpace(version), " ")
	found.version, found.major = version, parseMajor(version)
	if found.major < minMajor {
		return nil, fmt.Errorf("Postgres %s in %s is older than %d", version, dir, minMajor)
	}
	return found, nil
}

// serverEnv is this program's environment without the variables that configure Postgres or its locale.
func serverEnv(libraries []string) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "PG") || strings.HasPrefix(entry, "LC_") || strings.HasPrefix(entry, "LANG") ||
			len(libraries) > 0 && strings.HasPrefix(entry, "LD_LIBRARY_PATH=")
	})
	env = append(env, "LC_ALL=C")
	if len(libraries) > 0 {
		env = append(env, "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
	}
	return env
}

func (b *binaries) requireMajor(major string) error {
	if major == "" || major == strconv.Itoa(b.major) {
		return nil
	}
	return fmt.Errorf("the data was made by Postgres %s, and the server found is %s (%s): install Postgres %s, or start over with --reset",
		major, b.version, b.source, major)
}

// notFoundError is ErrNoPostgres with what to do on this machine. reason is why apt failed, nil if there is no apt.
func notFoundError(reason error) error {
	advice := "install PostgreSQL from https://www.postgresql.org/download/"
	for _, manager := range []struct{ tool, command string }{
		{"brew", "brew install postgresql@17"},
		{"apt-get", "sudo apt-get install postgresql"},
		{"dnf", "sudo dnf install postgresql-server"},
		{"apk", "sudo apk add postgresql"},
		{"pacman", "sudo pacman -S postgresql"},
		{"zypper", "sudo zypper install postgresql-server"},
	} {
		if _, err := exec.LookPath(manager.tool); err != nil {
			continue
		}
		advice = "run: " + manager.command
		if os.Geteuid() == 0 {
			advice = "run: " + strings.TrimPrefix(manager.command, "sudo ")
		}
		break
	}
	advice += " — or name one that runs: LOCAL_DATABASE_URL for go run ./deploy/local, TEST_DATABASE_URL for core's tests"
	if reason != nil {
		return fmt.Errorf("%w, and apt could not download it (%w): %s", ErrNoPostgres, reason, advice)
	}
	return fmt.Errorf("%w: %s", ErrNoPostgres, advice)
}
