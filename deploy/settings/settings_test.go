package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "intents.internal/deploy/settings"
	"intents.internal/deploy/stack"
)

const root = "../.."

// The reference is what the code says today.
func TestDocument_Current(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join(root, "deploy", "settings.md"))
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := settings.Document(root, string(document))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(document), fresh); diff != "" {
		t.Errorf("deploy/settings.md differs from the Config structs: go run ./deploy/settings\n%s", diff)
	}
}

var variable = regexp.MustCompile(`\b(CORE|GATEWAY)_[A-Z0-9_]+\b`)

// Services refuse variables they do not know.
func TestDeployments_SettingNames(t *testing.T) {
	t.Parallel()
	known := settingNames(t)
	local := map[string]bool{} // README.md's first intent reads the environment file of a local stack
	for line := range strings.Lines(stack.Env{}.String()) {
		name, _, _ := strings.Cut(line, "=")
		local[name] = true
	}
	for _, path := range deployments(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			for _, name := range variable.FindAllString(line, -1) {
				if !known[name] && (!local[name] || path != filepath.Join(root, "README.md")) {
					t.Errorf("%s:%d: neither service has a setting %s", strings.TrimPrefix(path, root+"/"), n+1, name)
				}
			}
		}
	}
}

var entry = regexp.MustCompile(`"((?:CORE|GATEWAY)_[A-Z0-9_]+)=`)

// The programs that start services pass them settings alone.
func TestPrograms_SettingNames(t *testing.T) {
	t.Parallel()
	known := settingNames(t)
	for _, folder := range []string{"deploy", "loadtest"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, file fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range entry.FindAllStringSubmatch(string(text), -1) {
				if name := found[1]; !known[name] && name != "GATEWAY_URL" { // what files of a stack begin with
					t.Errorf("%s: neither service has a setting %s", strings.TrimPrefix(path, root+"/"), name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// settingNames are the variables of both services.
func settingNames(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, service := range settings.Services {
		all, err := settings.Read(root, service)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			known[s.Variable] = true
		}
	}
	return known
}

// deployments are the files that set, or speak of, settings.
func deployments(t *testing.T) []string {
	t.Helper()
	files := []string{"docker-compose.yml", ".env.example", "README.md", "deploy/Dockerfile"}
	for i, file := range files {
		files[i] = filepath.Join(root, file)
	}
	pages, err := filepath.Glob(filepath.Join(root, "deploy", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, pages...)
	for _, folder := range []string{"deploy/helm", "deploy/haproxy"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			// The patterns of a schema are no names.
			if err == nil && entry.Type().IsRegular() && entry.Name() != "values.schema.json" {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestRead(t *testing.T) {
	t.Parallel()
	const good = `package main

// Config is read from the environment.
type Config struct {
	// Wait is how long to wait, 1s to 1m. Default 5s; see MaxConns.
	Wait time.Duration ` + "`env:\"X_WAIT\" envDefault:\"5s\"`" + `
	// MaxConns bounds connections, a|b.
	// Wait is a word here, and X_WAIT a setting. Default none.
	MaxConns int ` + "`env:\"X_MAX_CONNS\"`" + `
	// Token is the secret.
	Token telemetry.Secret ` + "`env:\"X_TOKEN\"`" + `
}
`
	for name, c := range map[string]struct{ old, replacement, fault string }{
		"as it is":                    {"", "", ""},
		"another default":             {"Default 5s;", "Default 6s;", "it has the default 6s"},
		"a default that is not there": {"Default none.", "Default 7.", "it has the default 7"},
		"no comment":                  {"\t// Token is the secret.\n", "", "the comment of Token must begin with its name"},
		"no variable":                 {`env:"X_TOKEN"`, "", "Token has no env tag"},
		"two names":                   {"Wait time", "Wait, Stay time", "declare each field on its own line"},
		"no Config":                   {"type Config", "type Settings", "has no struct Config"},
		"no Go":                       {"package main", "pakkage main", "read the settings of x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "x", "config.go"), []byte(strings.Replace(good, c.old, c.replacement, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := settings.Read(dir, "x")
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("error %v, want %q", err, c.fault)
				}
				return
			}
			want := []settings.Setting{
				{Variable: "X_WAIT", Default: "5s", Kind: "duration", Meaning: "How long to wait, 1s to 1m. See `X_MAX_CONNS`."},
				{Variable: "X_MAX_CONNS", Kind: "number", Meaning: "Bounds connections, a|b. Wait is a word here, and `X_WAIT` a setting."},
				{Variable: "X_TOKEN", Kind: "secret", Meaning: "The secret."},
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestDocument_NoMarkers(t *testing.T) {
	t.Parallel()
	if _, err := settings.Document(root, "no markers"); err == nil || !strings.Contains(err.Error(), "<!-- settings of gateway") {
		t.Errorf("a document without markers: %v", err)
	}
}
