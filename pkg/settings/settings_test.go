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
	Limit  string `env:"X_LIMIT"`
	Secret string `env:"X_SECRET"`
	Server string `env:"X_SERVER"`
}

// parse refuses a limit with letters and a missing secret.
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

// environment names this file, or none if it is empty.
func environment(file string) map[string]string {
	return map[string]string{"X_FILE": file, "X_LISTEN": "here", "X_SECRET": "of the environment", "X_LIMIT": "5", "HOME": "/"}
}

// file writes a file with this text.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.env")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead_FileOverridesEnvironment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		want config // besides File
	}{
		"no file":        {"", config{Listen: "here", Limit: "5", Secret: "of the environment"}},
		"an empty one":   {file(t, ""), config{Listen: "here", Limit: "5", Secret: "of the environment"}},
		"entries":        {file(t, "# new\n\nX_LIMIT=6\n  X_SECRET = s$e#c=r'e\"t \nX_SERVER="), config{Listen: "here", Limit: "6", Secret: `s$e#c=r'e"t`}},
		"of Windows":     {file(t, "X_LIMIT=6\r\n"), config{Listen: "here", Limit: "6", Secret: "of the environment"}},
		"an empty value": {file(t, "X_LISTEN=\n"), config{Limit: "5", Secret: "of the environment"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := environment(c.file)
			before := maps.Clone(given)
			got, err := settings.Read(given, "X_FILE", parse)
			if err != nil {
				t.Fatal(err)
			}
			c.want.File = c.file
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, given); diff != "" {
				t.Errorf("the environment has changed (-want +got):\n%s", diff)
			}
		})
	}
}

// An error names each fault, and no value.
func TestRead_AllFaults(t *testing.T) {
	t.Parallel()
	const hush = "hush-hush"
	text := "X_LIMIT\nexport X_LIMIT=7\nX_LIMIT='7'\nX_OTHER=" + hush + "\nHOME=/\nX_FILE=/y\nX_LIMIT=abc\nX_LIMIT=7\nX_SECRET=\n" + hush
	want := []string{
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
	}
	_, err := settings.Read(environment(file(t, text)), "X_FILE", parse)
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for what, path := range map[string]string{"a directory": t.TempDir(), "a file that is not there": filepath.Join(t.TempDir(), "x.env")} {
		if _, err := settings.Read(environment(path), "X_FILE", parse); err == nil || !strings.HasPrefix(err.Error(), "X_FILE cannot be read: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
