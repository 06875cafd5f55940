// Package manifests tests the files that the service is deployed with, with the libraries of the programs that read them and with
// the services themselves, but without a container engine or a cluster.
//
// It is a module outside the workspace, because those libraries are large. deploy/check runs it.
package manifests_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// accepts fails the test unless the settings are valid: the program's health check reads them all, and then fails because nothing
// listens at the port.
func accepts(t *testing.T, program string, settings map[string]string) {
	t.Helper()
	path := filepath.Join(programs(t), program)
	ops := strings.ToUpper(program) + "_OPS_LISTEN"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, path, "healthcheck")
	for name, value := range settings {
		if name != ops {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	command.Env = append(command.Env, ops+"=127.0.0.1:1")
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), "not serving") {
		t.Errorf("%s does not take its settings: %v\n%s", program, err, out)
	}
}

// checkMemory requires that the soft bound of Go's collector leaves the rest of a process a tenth of its memory limit.
func checkMemory(t *testing.T, name, bound string, limit int64) {
	t.Helper()
	soft, err := resource.ParseQuantity(strings.TrimSuffix(bound, "B"))
	if err != nil || soft.Value() > limit*9/10 {
		t.Errorf("%s: GOMEMLIMIT is %s, and the limit %d: %v", name, bound, limit, err)
	}
}

var settingRow = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| [a-z ]+ \\| `([^`]*)` \\|")

// settingDefaults are from the reference in deploy/settings.md, which a test compares with the code.
func settingDefaults(t *testing.T) map[string]string {
	t.Helper()
	defaults := map[string]string{}
	for _, row := range settingRow.FindAllStringSubmatch(read(t, "deploy/settings.md"), -1) {
		defaults[row[1]] = row[2]
	}
	return defaults
}

// patience is the longest time that a process with these settings takes to stop.
func patience(t *testing.T, settings map[string]string, names ...string) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, name := range names {
		text, ok := settings[name]
		if !ok {
			text = settingDefaults(t)[name]
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", name, err))
		}
		sum += d
	}
	return sum
}

// slowest are the settings whose sum is the longest time that a process takes to stop.
var slowest = map[string][]string{
	"core":    {"CORE_DRAIN_DELAY", "CORE_SHUTDOWN_GRACE"},
	"gateway": {"GATEWAY_DRAIN_DELAY", "GATEWAY_DRAIN_TIMEOUT"},
}

// runs fails the test unless core accepts these arguments as a command and fails to connect to its database.
func runs(t *testing.T, words []string, settings map[string]string) {
	t.Helper()
	path := filepath.Join(programs(t), "core")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, path, words...)
	for name := range settings {
		if name != "CORE_DATABASE_URL" && name != "SSL_CERT_DIR" && (name != "CORE_MIGRATE_DATABASE_URL" || words[0] != "migrate") {
			t.Errorf("core %s needs no %s", words, name)
		}
	}
	command.Env = []string{"CORE_DATABASE_URL=postgres://intents@127.0.0.1:1/intents"}
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "127.0.0.1:1") {
		t.Errorf("core %s: %v\n%s", words, err, out)
	}
	if file, found := strings.CutPrefix(words[len(words)-1], "/data/"); found {
		for _, name := range []string{file, "NOTICE"} {
			if !strings.Contains(read(t, dockerfile), "deploy/data/"+name) {
				t.Errorf("core's image has no /data/%s", name)
			}
		}
	}
}
