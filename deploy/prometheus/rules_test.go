// Package prometheus_test checks the rules, alerts, runbook and dashboards with promtool and against each other. loadtest/e2e tests
// that the services export the metrics.
package prometheus_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promtool runs promtool and fails the test if it reports an error.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is missing: install the Debian package prometheus")
		}
		t.Skip("promtool is missing: install the Debian package prometheus")
	}
	said, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, said)
	}
}

// files are the files that match the pattern, at least one.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("files %s: %q, %v", pattern, found, err)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "config", "prometheus.yml")
}

func TestRules(t *testing.T) {
	t.Parallel()
	promtool(t, append([]string{"check", "rules", "--lint=all", "--lint-fatal"}, files(t, "rules/*.yml")...)...)
}

// Every alert fires with its annotations when it must, and not otherwise.
func TestAlerts(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, "tests/*.yml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			promtool(t, "test", "rules", file)
		})
	}
}

// alert is the text of one alerting rule.
type alert struct{ name, text string }

// alerts returns the alerting rules, each from its name to the next rule.
func alerts(t *testing.T) []alert {
	t.Helper()
	var all []alert
	for _, file := range files(t, "rules/*.yml") {
		for _, rule := range strings.Split(read(t, file), "\n      - ")[1:] {
			if name, text, _ := strings.Cut(rule, "\n"); strings.HasPrefix(name, "alert: ") {
				all = append(all, alert{strings.TrimPrefix(name, "alert: "), text})
			}
		}
	}
	if len(all) < 5 {
		t.Fatalf("%d alerts found", len(all))
	}
	return all
}

// Each alert has a duration, a severity, annotations, an entry in the runbook, a test in which it fires and one in which it does not.
func TestAlerts_Complete(t *testing.T) {
	t.Parallel()
	parts := []*regexp.Regexp{
		regexp.MustCompile(`(?m)^ +for: \d+[smh]$`),
		regexp.MustCompile(`(?m)^ +labels: \{severity: (critical|warning)\}$`),
		regexp.MustCompile(`(?m)^ +summary: "[^\n]+\."$`),
		regexp.MustCompile(`(?m)^ +description: "[^\n]*\{\{[^\n]+\."$`),
	}
	fires, silent := tested(t)
	entries := headings(read(t, "../RUNBOOK.md"))
	names := map[string]bool{}
	for _, a := range alerts(t) {
		for _, part := range parts {
			if !part.MatchString(a.text) {
				t.Errorf("%s: nothing matches %s", a.name, part)
			}
		}
		if link := "runbook_url: ${RUNBOOK_URL}#" + strings.ToLower(a.name) + "\n"; !strings.Contains(a.text+"\n", link) {
			t.Errorf("%s has no %s", a.name, link)
		}
		if !fires[a.name] || !silent[a.name] {
			t.Errorf("%s: a test in which it fires: %t, in which it is silent: %t", a.name, fires[a.name], silent[a.name])
		}
		if names[a.name] || !slices.Contains(entries, a.name) {
			t.Errorf("%s is there twice, or has no entry in the runbook", a.name)
		}
		names[a.name] = true
	}
	for _, entry := range entries {
		if !names[entry] {
			t.Errorf("the runbook has an entry for %s, which is no alert", entry)
		}
	}
}

// tested returns the alerts that a test expects to fire, and those that a test expects not to.
func tested(t *testing.T) (fires, silent map[string]bool) {
	t.Helper()
	fires, silent = map[string]bool{}, map[string]bool{}
	for _, file := range files(t, "tests/*.yml") {
		for _, moment := range strings.Split(read(t, file), "- eval_time: ")[1:] {
			_, moment, _ = strings.Cut(moment, "alertname: ")
			name, rest, _ := strings.Cut(moment, "\n")
			if strings.HasPrefix(strings.TrimSpace(rest), "exp_alerts:") {
				fires[name] = true
			} else {
				silent[name] = true
			}
		}
	}
	return fires, silent
}
