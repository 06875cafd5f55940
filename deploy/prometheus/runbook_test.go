package prometheus_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// headings are the runbook's entries.
func headings(runbook string) []string {
	var all []string
	for _, match := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(runbook, -1) {
		all = append(all, match[1])
	}
	return all
}

// Each entry says what the alert means, what to look at and what to do.
func TestRunbookEntriesAreComplete(t *testing.T) {
	t.Parallel()
	whole := regexp.MustCompile("(?s)^\\w+\n\nMeans: .+\\.\n\n```promql\n.+\n```\n\nDo: .+\\.\n")
	entries := strings.Split(read(t, "../RUNBOOK.md"), "\n### ")[1:]
	for _, entry := range entries {
		if !whole.MatchString(entry + "\n") {
			name, _, _ := strings.Cut(entry, "\n")
			t.Errorf("%s lacks what it means, what to look at or what to do:\n%s", name, entry)
		}
	}
}

// What the runbook points at exists: its links, and the settings that it says to change.
func TestRunbookPointsSomewhere(t *testing.T) {
	t.Parallel()
	runbook := read(t, "../RUNBOOK.md")
	var anchors []string
	for _, name := range headings(runbook) {
		anchors = append(anchors, strings.ToLower(name))
	}
	for _, link := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(runbook, -1) {
		if !slices.Contains(anchors, link[1]) {
			t.Errorf("the runbook links to #%s, which is not there", link[1])
		}
	}
	settings := read(t, "../../gateway/config.go") + read(t, "../../core/config.go")
	named := regexp.MustCompile(`\b(?:GATEWAY|CORE)_[A-Z_]+\b`).FindAllString(runbook, -1)
	for _, setting := range named {
		if !strings.Contains(settings, `env:"`+setting+`"`) {
			t.Errorf("the runbook names %s, which is no setting", setting)
		}
	}
	if len(named) < 10 {
		t.Errorf("only these settings were found: %q", named)
	}
}
