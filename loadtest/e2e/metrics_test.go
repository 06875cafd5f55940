package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
)

// A real Prometheus scrapes the stack: the metrics are well-formed, and every query that operators are given, in rules,
// dashboards and the runbook, is valid and asks for names, labels and values that exist.
func TestPrometheus(t *testing.T) {
	journey(t)
	t.Parallel()
	use(t)
	system.Execute(t, shared.Stack.Env().DatabaseURL, `SELECT pg_create_physical_replication_slot('metrics', true)`) // read by the cores that start now
	cores := append(operations("core"), startBesideReplica(t), startFollowing(t))
	t.Run("promtool check metrics", func(t *testing.T) {
		t.Parallel()
		for _, address := range append(operations("gateway"), cores...) {
			checkMetrics(t, address)
		}
	})
	t.Run("queries of operators", func(t *testing.T) {
		t.Parallel()
		p := startPrometheus(t, cores)
		p.checkSeries()
		queries := p.rules()
		maps.Copy(queries, shownQueries(t))
		asked := 0
		for place, all := range queries {
			for _, expression := range all {
				asked++
				if err := p.TryAsk("query", url.Values{"query": {expression}}, nil); err != nil {
					t.Errorf("%s: %s: %v", place, expression, err)
				}
				for _, selector := range p.unknown(expression) {
					t.Errorf("%s: %s: there is no %s", place, expression, selector)
				}
			}
		}
		t.Logf("%d queries of %d rules, panels and entries were tried", asked, len(queries))
		if asked < 150 {
			t.Errorf("only %d queries were found", asked)
		}
	})
}

// use sends a request of every kind that metrics tell apart by more than their route.
func use(t *testing.T) {
	t.Helper()
	key := freshKey(t)
	for _, base := range shared.Stack.Env().GatewayURLs {
		tester := apiClient(t, base, key)
		must(tester.Transfers.Cancel(t.Context(), pay(t, tester, 1)[0]))(t)
		_, err := tester.Transfers.Get(t.Context(), uuid.NewString())
		failed(t, err, 404, intents.CodeNotFound)
	}
}

// checkMetrics runs Prometheus's linter on what a service exports.
func checkMetrics(t *testing.T, address string) {
	t.Helper()
	path := system.FindProgram(t, "on Debian: apt-get install prometheus", "promtool")
	command := exec.CommandContext(t.Context(), path, "check", "metrics")
	command.Stdin = strings.NewReader(system.Get(t, "http://"+address+"/metrics"))
	if said, err := command.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("%s: %v\n%s", address, err, said)
	}
}

// shownQueries are those of the dashboards and the runbook, by where they are.
func shownQueries(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	dashboards, err := filepath.Glob(monitoring + "grafana/dashboards/*.json")
	if err != nil || len(dashboards) == 0 {
		t.Fatalf("dashboards: %q, %v", dashboards, err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".+", "$chain", ".+")
	labelValues := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for _, file := range dashboards {
		text := must(os.ReadFile(file))(t)
		var d struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
			Templating  struct{ List []struct{ Definition string } }
			Annotations struct{ List []struct{ Expr string } }
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				place := filepath.Base(file) + " " + p.Title
				all[place] = append(all[place], variables.Replace(target.Expr))
			}
		}
		for _, v := range d.Templating.List {
			if parts := labelValues.FindStringSubmatch(v.Definition); parts != nil {
				all[file] = append(all[file], fmt.Sprintf("group by (%s) (%s)", parts[2], parts[1]))
			} else if v.Definition != "" {
				t.Errorf("%s: a variable of another form: %s", file, v.Definition)
			}
		}
		for _, a := range d.Annotations.List {
			all[file] = append(all[file], a.Expr)
		}
	}
	text := must(os.ReadFile(monitoring + "RUNBOOK.md"))(t)
	for n, block := range regexp.MustCompile("(?s)```promql\n(.+?)\n```").FindAllStringSubmatch(string(text), -1) {
		all[fmt.Sprintf("runbook, block %d", n+1)] = strings.Split(block[1], "\n")
	}
	return all
}

// rules are the queries of the rules that Prometheus has loaded, by the rules' names. Each was evaluated without an error.
func (p *prometheus) rules() map[string][]string {
	p.t.Helper()
	var loaded struct {
		Groups []struct {
			Rules []struct{ Name, Query, Health, LastError string }
		}
	}
	p.Ask("rules", nil, &loaded)
	all := map[string][]string{}
	for _, group := range loaded.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				p.t.Errorf("rule %s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
			all["rule "+rule.Name] = []string{rule.Query}
		}
	}
	return all
}

// checkSeries fails the test where a label has values without bound, or an instance very many series.
func (p *prometheus) checkSeries() {
	p.t.Helper()
	open := regexp.MustCompile(`sk_(test|live)_|[0-9a-f]{8}-[0-9a-f]{4}-|0x[0-9a-fA-F]{8}|[0-9a-f]{32}|@|\?`)
	var series []map[string]string
	p.Ask("series", url.Values{"match[]": {`{__name__=~".+"}`}}, &series)
	count := map[string]int{}
	for _, labels := range series {
		count[labels["instance"]]++
		for label, value := range labels {
			if label != "revision" && open.MatchString(value) {
				p.t.Errorf("%s has a label with values without bound: %s=%q", labels["__name__"], label, value)
			}
		}
	}
	for instance, n := range count {
		if n > 4000 { // a core that has answered each of its routes
			p.t.Errorf("%s exports %d series", instance, n)
		}
	}
}
