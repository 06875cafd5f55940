package prometheus_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every query that the runbook and the dashboards have is one that Prometheus understands.
func TestQueriesAreValid(t *testing.T) {
	t.Parallel()
	var queries []string
	for _, block := range regexp.MustCompile("(?s)```promql\n(.+?)\n```").FindAllStringSubmatch(read(t, "../RUNBOOK.md"), -1) {
		queries = append(queries, strings.Split(block[1], "\n")...)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*")
	for _, file := range files(t, "../grafana/dashboards/*.json") {
		var d dashboard
		if err := json.Unmarshal([]byte(read(t, file)), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				queries = append(queries, variables.Replace(target.Expr))
			}
		}
	}
	if len(queries) < 150 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	// promtool reads no bare queries, but rules.
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: queries\n    rules:\n")
	for n, query := range queries {
		quoted, err := json.Marshal(query)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&rules, "      - {record: \"query:%d\", expr: %s}\n", n, quoted)
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=none", file)
}

// What the runbook has operators paste is a script that a shell understands, and has every word of the entries' commands.
func TestRunbookCommandsAreValid(t *testing.T) {
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
	// Commands that are given elsewhere begin with these, or with what every machine has.
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
