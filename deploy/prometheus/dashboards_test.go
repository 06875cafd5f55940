package prometheus_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard has the checked fields of a Grafana dashboard.
type dashboard struct {
	UID, Title, Description string
	SchemaVersion           int
	Templating              struct{ List []struct{ Name, Type string } }
	Panels                  []panel
}

type panel struct {
	ID                 int
	Type               string
	Title, Description string
	Datasource         struct{ Type, UID string }
	GridPos            struct{ X, Y, W, H int }
	Targets            []struct {
		RefID, Expr string
		Datasource  struct{ UID string }
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
}

// Dashboards can be provisioned repeatedly and with any Prometheus, and no panels overlap.
func TestDashboards(t *testing.T) {
	t.Parallel()
	uids := map[string]string{}
	for _, file := range files(t, "../grafana/dashboards/*.json") {
		var d dashboard
		if err := json.Unmarshal([]byte(read(t, file)), &d); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if want := "intents-" + strings.TrimSuffix(filepath.Base(file), ".json"); d.UID != want || uids[d.UID] != "" {
			t.Errorf("%s has the uid %q, want %q, which no other has", file, d.UID, want)
		}
		uids[d.UID] = file
		variables := d.Templating.List
		if d.Title == "" || d.Description == "" || d.SchemaVersion == 0 || len(variables) == 0 ||
			variables[0].Name != "datasource" || variables[0].Type != "datasource" {
			t.Errorf("%s has no title, description, schema version or datasource variable", file)
		}
		checkPanels(t, file, d.Panels)
	}
}

// What an alert is about stands in a panel too, so that who is woken sees how it came.
func TestDashboards_Alerts(t *testing.T) {
	t.Parallel()
	shown := ""
	for _, file := range files(t, "../grafana/dashboards/*.json") {
		shown += read(t, file)
	}
	settings := []string{"intents_core_chain_tick_interval_seconds", "intents_core_screening_list_max_age_seconds"}
	for _, metric := range regexp.MustCompile(`\bintents_[a-z_]+\b`).FindAllString(read(t, "rules/alerts.yml"), -1) {
		if !regexp.MustCompile(`\b`+metric+`\b`).MatchString(shown) && !slices.Contains(settings, metric) {
			t.Errorf("%s is in no panel", metric)
		}
	}
}

func checkPanels(t *testing.T, file string, panels []panel) {
	t.Helper()
	ids := map[int]bool{}
	const width = 24
	taken := map[[2]int]string{}
	for _, p := range panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("%s: panel %d, %q, has no id or title of its own", file, p.ID, p.Title)
		}
		ids[p.ID] = true
		at := p.GridPos
		if at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > width {
			t.Errorf("%s: %q is at %+v", file, p.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s: %q and %q overlap", file, other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" || p.FieldConfig.Defaults.Unit == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("%s: %q has another datasource, no unit, no description or no query", file, p.Title)
		}
		for _, target := range p.Targets {
			if target.RefID == "" || target.Expr == "" || target.Datasource.UID != "${datasource}" {
				t.Errorf("%s: %q has an incomplete query: %+v", file, p.Title, target)
			}
			checkRanges(t, file+": "+p.Title, target.Expr)
		}
	}
}

var (
	ranges   = regexp.MustCompile(`\[([^\]]*)\]`)
	counters = regexp.MustCompile(`\b\w+_total\b(?:\{[^}]*\})?(.?)`)
)

// checkRanges requires rates of counters with $__rate_interval: a shorter range would miss samples.
func checkRanges(t *testing.T, place, query string) {
	t.Helper()
	for _, interval := range ranges.FindAllStringSubmatch(query, -1) {
		if interval[1] != "$__rate_interval" {
			t.Errorf("%s: a range of %s in %s", place, interval[1], query)
		}
	}
	for _, counter := range counters.FindAllStringSubmatch(query, -1) {
		if counter[1] != "[" {
			t.Errorf("%s: a counter that is no rate in %s", place, query)
		}
	}
}
