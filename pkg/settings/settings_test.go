package settings_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/settings"
	"intents.internal/pkg/telemetry"
)

// config is a service's.
type config struct {
	File    string           `env:"X_ENV_FILE"`
	Listen  string           `env:"X_LISTEN"`
	Limit   int              `env:"X_LIMIT" envDefault:"5"`
	Timeout time.Duration    `env:"X_TIMEOUT"`
	Secret  telemetry.Secret `env:"X_SECRET"`
	Server  string           `env:"X_SERVER"`
	Headers telemetry.Secret `env:"OTHER_HEADERS"`
}

// check refuses a limit above 10 and a missing secret.
func check(c config, f *settings.Faults) {
	f.Number("X_LIMIT", c.Limit, 0, 10)
	f.Expect(c.Secret != "", "X_SECRET", "is required")
}

// environment names this file, or none if it is empty.
func environment(file string) map[string]string {
	return map[string]string{"X_ENV_FILE": file, "X_LISTEN": "here", "X_SECRET": "environment's", "X_LIMIT": "5", "HOME": "/", "XYZ": "z"}
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

// lines are those of an error, none without one.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestRead_FileOverridesEnvironment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		want config // besides File
	}{
		"no file":        {"", config{Listen: "here", Limit: 5, Secret: "environment's"}},
		"an empty one":   {file(t, ""), config{Listen: "here", Limit: 5, Secret: "environment's"}},
		"entries":        {file(t, "# new\n\nX_LIMIT=6\n  X_SECRET = s$e#c=r'e\"t \nX_SERVER="), config{Listen: "here", Limit: 6, Secret: `s$e#c=r'e"t`}},
		"of Windows":     {file(t, "X_LIMIT=6\r\n"), config{Listen: "here", Limit: 6, Secret: "environment's"}},
		"an empty value": {file(t, "X_LISTEN=\nX_LIMIT=\n"), config{Limit: 5, Secret: "environment's"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := environment(c.file)
			before := maps.Clone(given)
			got, err := settings.Read(given, "X_", check)
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

// An error names each fault by its variable, and shows no secret.
func TestRead_AllFaults(t *testing.T) {
	t.Parallel()
	const hush = "hush-hush"
	text := "X_LIMIT\nexport X_LIMIT=7\nX_LIMIT='7'\nX_OTHER=" + hush + "\nHOME=/\nX_ENV_FILE=/y\nX_LIMIT=11\nX_LIMIT=7\nX_SECRET=\nX_SREVER=a\n" + hush
	given := environment(file(t, text))
	maps.Copy(given, map[string]string{"X_TIMEOUT": "5x", "X_LSITEN": "there", "X_UNHEARD_OF": hush, "OTHER_HEADERS": "a=" + hush + "\nb=c"})
	want := []string{
		"X_ENV_FILE line 1: must be NAME=value, empty, or begin with #",
		"X_ENV_FILE line 2: must be NAME=value, empty, or begin with #",
		"X_ENV_FILE line 3: X_LIMIT is quoted: values are taken as they are, leave the quotes out",
		"X_ENV_FILE line 4: there is no setting X_OTHER",
		"X_ENV_FILE line 5: there is no setting HOME",
		"X_ENV_FILE line 6: X_ENV_FILE is read from the environment alone",
		"X_ENV_FILE line 8: X_LIMIT is set in line 7 already",
		"X_ENV_FILE line 10: there is no setting X_SREVER; did you mean X_SERVER?",
		"X_ENV_FILE line 11: must be NAME=value, empty, or begin with #",
		"there is no setting X_LSITEN; did you mean X_LISTEN?",
		"there is no setting X_UNHEARD_OF",
		"OTHER_HEADERS has a control character or a blank other than a space inside, such as a line break: set it again without",
		`X_TIMEOUT cannot be read: unable to parse duration: time: unknown unit "x" in duration "5x"`,
		"X_LIMIT must be 0 to 10, not 11",
		"X_SECRET is required",
	}
	_, err := settings.Read(given, "X_", check)
	if diff := cmp.Diff(want, lines(err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for what, path := range map[string]string{"a directory": t.TempDir(), "a file that is not there": filepath.Join(t.TempDir(), "x.env")} {
		if _, err := settings.Read(environment(path), "X_", check); err == nil || !strings.HasPrefix(err.Error(), "X_ENV_FILE cannot be read: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRead_Secrets(t *testing.T) {
	t.Parallel()
	const inside = "X_SECRET has a control character or a blank other than a space inside, such as a line break: set it again without"
	for text, want := range map[string]struct {
		secret telemetry.Secret
		fault  string
	}{
		"secret":                     {"secret", ""},
		"secret\n":                   {"secret", ""},
		"\t secret\r\n":              {"secret", ""},
		"\u00a0secret\x00\x7f\ufeff": {"secret\x00\x7f\ufeff", inside},
		"\u00a0secret\x00\x7f":       {"secret", ""},
		" sec ret ":                  {"sec ret", ""},
		"sec\nret":                   {"sec\nret", inside},
		"sec\x00ret":                 {"sec\x00ret", inside},
		" \n":                        {"", "X_SECRET is required"},
	} {
		for source, given := range map[string]map[string]string{
			"environment": {"X_SECRET": text},
			"file":        {"X_ENV_FILE": file(t, "X_SECRET="+text)},
		} {
			if source == "file" && strings.Contains(strings.TrimSpace(text), "\n") {
				continue // it is two lines there
			}
			got, err := settings.Read(given, "X_", check)
			if strings.Join(lines(err), "\n") != want.fault || got.Secret != want.secret {
				t.Errorf("%q of the %s: %q, %v", text, source, got.Secret.Reveal(), err)
			}
		}
	}
}

// A container beside services of the same name has variables of Kubernetes, and a linked one those of Docker.
func TestRead_InjectedVariables(t *testing.T) {
	t.Parallel()
	injected := map[string]string{
		"X_SECRET": "secret", "Y_ELSE": "not ours",
		"X_SERVICE_HOST": "10.0.0.1", "X_SERVICE_PORT": "8081", "X_SERVICE_PORT_INTERNAL": "8081", "X_METRICS_SERVICE_HOST": "10.0.0.2",
		"X_METRICS_SERVICE_PORT_HTTP": "9081", "X_PORT": "tcp://10.0.0.1:8081", "X_METRICS_PORT": "udp://10.0.0.2:9081",
		"X_PORT_8081_TCP": "tcp://10.0.0.1:8081", "X_PORT_8081_TCP_PROTO": "tcp", "X_PORT_8081_TCP_PORT": "8081", "X_PORT_8081_TCP_ADDR": "10.0.0.1",
		"X_METRICS_PORT_53_UDP_ADDR": "10.0.0.2", "X_NAME": "/gateway/x", "X_ENV_PATH": "/bin",
	}
	if _, err := settings.Read(injected, "X_", check); err != nil {
		t.Error(err)
	}
	for _, name := range []string{
		"X_PORT", "X_LISTEN_PORT", "X_NAME", "X_ENV_PATH", "X_SERVICE", "X_HOST", "X_PORT_TCP", "X_SERVICE_HOSTS",
		"X_URL", "X_URLS", "X_METRICS_URL", "X_PID", "X_2_PID",
	} {
		_, err := settings.Read(map[string]string{"X_SECRET": "secret", name: "8080"}, "X_", check)
		if err == nil || !strings.HasPrefix(err.Error(), "there is no setting "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRead_DidYouMean(t *testing.T) {
	t.Parallel()
	for name, meant := range map[string]string{
		"X_LITSEN": "X_LISTEN", "X_LISTE": "X_LISTEN", "X_LISTENS": "X_LISTEN", "X_SECRT": "X_SECRET", "X_ENVFILE": "X_ENV_FILE", "X_TIME_OUT": "X_TIMEOUT",
		"X_": "", "X_TYPO": "", "X_CONNECTIONS": "",
	} {
		want := "there is no setting " + name
		if meant != "" {
			want += "; did you mean " + meant + "?"
		}
		_, err := settings.Read(map[string]string{"X_SECRET": "secret", name: "a"}, "X_", check)
		if diff := cmp.Diff([]string{want}, lines(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFaults_Duration(t *testing.T) {
	t.Parallel()
	var faults settings.Faults
	faults.Duration("X_A", time.Second, time.Second, time.Minute)
	faults.Duration("X_B", time.Minute, 0, time.Minute)
	faults.Duration("X_C", time.Hour, time.Second, 0)
	faults.Duration("X_D", time.Second-1, time.Second, 0)
	faults.Duration("X_E", time.Minute+1, 100*time.Millisecond, time.Minute)
	faults.Duration("X_F", 0, time.Minute, 168*time.Hour)
	want := []string{
		"X_D must be at least 1s, not 999.999999ms", "X_E must be 100ms to 1m, not 1m0.000000001s", "X_F must be 1m to 168h, not 0s",
	}
	if diff := cmp.Diff(want, lines(faults.Err())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
