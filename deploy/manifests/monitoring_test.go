package manifests_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// The chart's rules are those that deploy/prometheus tests, with labels that Prometheus selects them by.
func TestChart_Rules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "deploy/prometheus/rules/*.yml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("rules: %q %v", files, err)
	}
	var want []monitoring.RuleGroup
	for _, file := range files {
		var content struct{ Groups []monitoring.RuleGroup }
		text := strings.ReplaceAll(read(t, "deploy/prometheus/rules/"+filepath.Base(file)), "${RUNBOOK_URL}", "https://wiki.example/runbook")
		if err := yaml.UnmarshalStrict([]byte(text), &content); err != nil || len(content.Groups) == 0 {
			t.Fatalf("%s has no groups of rules: %v", file, err)
		}
		want = append(want, content.Groups...)
	}
	rule := of[*monitoring.PrometheusRule](objects(t, releases["all on"]))["trial"]
	if diff := cmp.Diff(want, rule.Spec.Groups); diff != "" || rule.Labels["release"] != "prometheus" {
		t.Errorf("labels %v, rules (-files +chart):\n%s", rule.Labels, diff)
	}
}
