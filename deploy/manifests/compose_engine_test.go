package manifests_test

import (
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var versionRow = regexp.MustCompile(`(?m)^\| (\w+) \| ([0-9.]+) \| (?:([0-9.]+)|[^|]+) \|$`)

// compose.md lists the shipped versions, and those that the tests have run with.
func TestCompose_DocumentedVersions(t *testing.T) {
	t.Parallel()
	shipped, said, tested := map[string]string{}, map[string]string{}, map[string]string{}
	for _, service := range project(t).Services {
		if service.Build == nil {
			name, _, _ := strings.Cut(path.Base(service.Image), ":")
			shipped[name] = regexp.MustCompile(`:v?(\d+(\.\d+)?)`).FindStringSubmatch(service.Image)[1]
		}
	}
	for _, row := range versionRow.FindAllStringSubmatch(read(t, "deploy/compose.md"), -1) {
		said[strings.ToLower(row[1])], tested[strings.ToLower(row[1])] = row[2], row[3]
	}
	if diff := cmp.Diff(shipped, said); diff != "" {
		t.Errorf("(-docker-compose.yml +deploy/compose.md):\n%s", diff)
	}
	if os.Getenv("CI") != "true" {
		return // other machines have other versions
	}
	postgres, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	for name, command := range map[string][]string{
		"postgres": {append(postgres, "postgres")[0], "--version"}, "redis": {"redis-server", "--version"}, "haproxy": {"haproxy", "-v"},
		"prometheus": {"prometheus", "--version"},
	} {
		out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
		version := regexp.MustCompile(`\d+\.\d+`).FindString(string(out))
		if err != nil || version != tested[name] && !strings.HasPrefix(version, tested[name]+".") {
			t.Errorf("%s is tested as %s and said to be as %s: %v", name, version, tested[name], err)
		}
	}
}

// Prometheus starts with the shipped configuration, and its alerts link to the runbook that .env names.
func TestCompose_RunbookLinks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ set, want, alertmanagers string }{
		"where it is said":   {"RUNBOOK_URL=https://wiki.example/intents?page=runbook&v=2", "https://wiki.example/intents?page=runbook&v=2#writequeuegrows", ""},
		"where none is said": {"ELSE=", "file:///srv/intents/deploy/RUNBOOK.md#writequeuegrows", ""},
		"to people":          {"ALERTMANAGERS=alertmanager:9093,other:9093", "file:///srv/intents/deploy/RUNBOOK.md#writequeuegrows", "alertmanager:9093,other:9093"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := load(t, append(secrets(t), c.set))
			if err != nil {
				t.Fatal(err)
			}
			service := p.Services["prometheus"]
			dir := t.TempDir()
			started := filepath.Join(dir, "prometheus")
			if err := os.WriteFile(started, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
				t.Fatal(err)
			}
			source, err := filepath.Abs(root + "/deploy/prometheus")
			if err != nil {
				t.Fatal(err)
			}
			places := strings.NewReplacer("/etc/prometheus", source, "/run/prometheus", filepath.Join(dir, "run"), "/bin/prometheus", started)
			words := append(append([]string{}, service.Entrypoint...), places.Replace(service.Command[0]))
			shell := exec.CommandContext(t.Context(), words[0], words[1:]...)
			shell.Env = os.Environ()
			for _, name := range []string{"RUNBOOK_URL", "ALERTMANAGERS"} {
				shell.Env = append(shell.Env, name+"="+*service.Environment[name])
			}
			out, err := shell.CombinedOutput()
			config := filepath.Join(dir, "run", "prometheus.yml")
			want := "--config.file=" + config + " --storage.tsdb.path=/prometheus --storage.tsdb.retention.time=15d --storage.tsdb.retention.size=8GB\n"
			if diff := cmp.Diff(want, string(out)); err != nil || diff != "" {
				t.Fatal(err, diff)
			}
			rules, err := os.ReadFile(filepath.Join(dir, "run", "rules", "alerts.yml"))
			if err != nil || !strings.Contains(string(rules), "runbook_url: "+c.want+"\n") || strings.Contains(string(rules), "RUNBOOK_URL") {
				t.Errorf("the alerts link elsewhere: %v\n%s", err, rules)
			}
			checkConfig(t, config)
			to, err := os.ReadFile(filepath.Join(dir, "run", "alertmanagers.yml"))
			if diff := cmp.Diff("- targets: ["+c.alertmanagers+"]\n", string(to)); err != nil || diff != "" {
				t.Errorf("alerts go to: %v %s", err, diff)
			}
		})
	}
}

func checkConfig(t *testing.T, config string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", config).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip("promtool is not installed")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
