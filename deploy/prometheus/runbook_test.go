package prometheus_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// headings are the headings of the runbook's entries.
func headings(runbook string) []string {
	var all []string
	for _, match := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(runbook, -1) {
		all = append(all, match[1])
	}
	return all
}

// Each entry has the meaning of the alert, what to look at and what to do.
func TestRunbook_Entries(t *testing.T) {
	t.Parallel()
	whole := regexp.MustCompile("(?s)^\\w+\n\nMeans: .+\\.\n\n```promql\n.+\n```\n\nDo: .+\\.\n")
	entries := strings.Split(read(t, "../RUNBOOK.md"), "\n### ")[1:]
	for _, entry := range entries {
		if !whole.MatchString(entry + "\n") {
			name, _, _ := strings.Cut(entry, "\n")
			t.Errorf("%s has no meaning, what to look at or what to do:\n%s", name, entry)
		}
	}
}

// Every link to a section of the runbook has a target, and the settings in the runbook exist.
func TestRunbook_LinksAndSettings(t *testing.T) {
	t.Parallel()
	runbook := read(t, "../RUNBOOK.md")
	var anchors []string
	for _, heading := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatch(runbook, -1) {
		anchors = append(anchors, strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-"))
	}
	links := 0
	for _, file := range append(files(t, "../*.md"), "../../README.md") {
		to := regexp.MustCompile(`RUNBOOK\.md#([\w-]+)`)
		if filepath.Base(file) == "RUNBOOK.md" {
			to = regexp.MustCompile(`\]\(#([^)]+)\)`)
		}
		for _, link := range to.FindAllStringSubmatch(read(t, file), -1) {
			links++
			if !slices.Contains(anchors, link[1]) {
				t.Errorf("%s links to the runbook's #%s, which is not there", file, link[1])
			}
		}
	}
	if links < 10 {
		t.Errorf("only %d links were found", links)
	}
	settings := read(t, "../../gateway/command/config.go") + read(t, "../../core/command/config.go")
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

// The runbook's commands are valid shell, and its functions define every command of the entries.
func TestRunbook_Commands(t *testing.T) {
	t.Parallel()
	runbook := read(t, "../RUNBOOK.md")
	blocks := regexp.MustCompile("(?s)```sh\n(.+?)\n```").FindAllStringSubmatch(runbook, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of commands, want one for each place where the service runs", len(blocks))
	}
	words := regexp.MustCompile(`(?m)^(\w+)\(\)`)
	for _, block := range blocks {
		shell := exec.CommandContext(t.Context(), "sh", "-n")
		shell.Stdin = strings.NewReader(block[1])
		if said, err := shell.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, said, block[1])
		}
		var defined []string
		for _, word := range words.FindAllStringSubmatch(block[1], -1) {
			defined = append(defined, word[1])
		}
		if got, want := strings.Join(defined, " "), "ask ready logs sql redis"; got != want {
			t.Errorf("a block defines %s, not %s:\n%s", got, want, block[1])
		}
	}
	// Each of these commands in the entries is valid shell, and its SQL is one quoted SELECT.
	for _, command := range regexp.MustCompile("`((?:ask|ready|logs|sql|redis) [^`]+)`").FindAllStringSubmatch(runbook, -1) {
		if strings.HasPrefix(command[1], "sql ") && !regexp.MustCompile(`(?s)^sql "SELECT\s[^"]+"$`).MatchString(command[1]) {
			t.Errorf("no statement in quotes: %s", command[1])
		}
		shell := exec.CommandContext(t.Context(), "sh", "-n")
		shell.Stdin = strings.NewReader(strings.ReplaceAll(command[1], `\|`, "|"))
		if said, err := shell.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", command[1], err, said)
		}
	}
}
