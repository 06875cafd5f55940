package manifests_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// The chart's rules are those that deploy/prometheus tests.
func TestChart_Rules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "deploy/prometheus/rules/*.yml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("rules: %q %v", files, err)
	}
	var want []monitoring.RuleGroup
	rules := 0
	for _, file := range files {
		var content struct{ Groups []monitoring.RuleGroup }
		if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(read(t, "deploy/prometheus/rules/"+filepath.Base(file)), "${RUNBOOK_URL}", "https://wiki.example/runbook")), &content); err != nil {
			t.Fatal(err)
		}
		want = append(want, content.Groups...)
		for _, group := range content.Groups {
			rules += len(group.Rules)
		}
	}
	for name, values := range releases {
		found := of[*monitoring.PrometheusRule](objects(t, values))
		if name != "all on" {
			if len(found) > 0 {
				t.Errorf("%s: rules that nobody asked for", name)
			}
			continue
		}
		rule := found["trial"]
		if rule == nil {
			t.Fatalf("%s has no rules", name)
		}
		if diff := cmp.Diff(want, rule.Spec.Groups); diff != "" {
			t.Errorf("the rules of %d files and of the chart (-files +chart):\n%s", len(files), diff)
		}
		if rule.Labels["release"] != "prometheus" {
			t.Errorf("labels %v: Prometheus does not select them", rule.Labels)
		}
	}
	if rules < 20 {
		t.Errorf("only %d rules were found", rules)
	}
}
