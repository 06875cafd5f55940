package settings_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/settings"
)

// config is a service's.
type config struct {
	File   string `env:"X_FILE"`
	Listen string `env:"X_LISTEN"`
	Limit  string `env:"X_LIMIT"    reload:"yes"`
	Secret string `env:"X_SECRET"   reload:"yes"`
	Server string `env:"X_SERVER"   reload:"credentials"`
}

// parse wants a limit without letters, and says so as a service would.
func parse(all map[string]string) (config, error) {
	c := config{File: all["X_FILE"], Listen: all["X_LISTEN"], Limit: all["X_LIMIT"], Secret: all["X_SECRET"], Server: all["X_SERVER"]}
	var faults []error
	if strings.ContainsAny(c.Limit, "abc") {
		faults = append(faults, errors.New("X_LIMIT must be a number"))
	}
	if c.Secret == "" {
		faults = append(faults, errors.New("X_SECRET is required"))
	}
	return c, errors.Join(faults...)
}

// source is one whose file has this text, or is not there where it is "-".
func source(t *testing.T, text string) settings.Source[config] {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.env")
	if text != "-" {
		write(t, path, text)
	}
	return settings.Source[config]{
		Variable:    "X_FILE",
		Environment: map[string]string{"X_FILE": path, "X_LISTEN": "here", "X_SECRET": "of the environment", "X_LIMIT": "5", "HOME": "/"},
		Parse:       parse,
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFileLiesOverTheEnvironment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want config // besides File
	}{
		"no file":        {"-", config{Listen: "here", Limit: "5", Secret: "of the environment"}},
		"an empty one":   {"", config{Listen: "here", Limit: "5", Secret: "of the environment"}},
		"entries":        {"# new\n\nX_LIMIT=6\n  X_SECRET = s$e#c=r'e\"t \nX_SERVER=", config{Listen: "here", Limit: "6", Secret: `s$e#c=r'e"t`}},
		"of Windows":     {"X_LIMIT=6\r\n", config{Listen: "here", Limit: "6", Secret: "of the environment"}},
		"an empty value": {"X_LISTEN=\n", config{Limit: "5", Secret: "of the environment"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := source(t, c.text)
			before := maps.Clone(s.Environment)
			got, err := s.Read()
			if err != nil {
				t.Fatal(err)
			}
			c.want.File = got.Path()
			if diff := cmp.Diff(c.want, got.Config); diff != "" || got.Found() != (c.text != "-") {
				t.Errorf("found %t (-want +got):\n%s", got.Found(), diff)
			}
			if diff := cmp.Diff(before, s.Environment); diff != "" {
				t.Errorf("the environment has changed (-want +got):\n%s", diff)
			}
		})
	}
}

// An error names each fault, and no value.
func TestFaultsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	const hush = "hush-hush"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"of every kind": {
			"X_LIMIT\nexport X_LIMIT=7\nX_LIMIT='7'\nX_OTHER=" + hush + "\nHOME=/\nX_FILE=/y\nX_LIMIT=abc\nX_LIMIT=7\nX_SECRET=\n" + hush,
			[]string{
				"X_FILE line 1: must be NAME=value, empty, or begin with #",
				"X_FILE line 2: must be NAME=value, empty, or begin with #",
				"X_FILE line 3: X_LIMIT is quoted: values are taken as they are, leave the quotes out",
				"X_FILE line 4: there is no setting X_OTHER",
				"X_FILE line 5: there is no setting HOME",
				"X_FILE line 6: X_FILE is read from the environment alone",
				"X_FILE line 8: X_LIMIT is set in line 7 already",
				"X_FILE line 10: must be NAME=value, empty, or begin with #",
				"X_LIMIT must be a number",
				"X_SECRET is required",
			},
		},
		"too long": {strings.Repeat("#\n", 1<<19+1), []string{"X_FILE has 1048578 bytes, 1048576 are allowed"}},
	} {
		_, err := source(t, c.text).Read()
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if diff := cmp.Diff(c.want, strings.Split(err.Error(), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	s := source(t, "-")
	s.Environment["X_FILE"] = t.TempDir()
	if _, err := s.Read(); err == nil || !strings.HasPrefix(err.Error(), "X_FILE cannot be read: ") {
		t.Errorf("a directory: %v", err)
	}
}

// Without the setting there is no file, and none is looked for.
func TestNoFileIsNamed(t *testing.T) {
	t.Parallel()
	s := source(t, "X_LIMIT=6\n")
	delete(s.Environment, "X_FILE")
	got, err := s.Read()
	if err != nil || got.Found() || got.Config.Limit != "5" {
		t.Errorf("%+v %v", got, err)
	}
}
