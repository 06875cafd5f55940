package manifests_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The chart's rules are those that the tests of deploy/prometheus hold to Prometheus, to the runbook and to the services.
func TestChartHasTheRules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "deploy/prometheus/rules/*.yml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("rules: %q %v", files, err)
	}
	var want []monitoring.RuleGroup
	rules := 0
	for _, file := range files {
		var content struct{ Groups []monitoring.RuleGroup }
		if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/prometheus/rules/"+filepath.Base(file))), &content); err != nil {
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
	if rules < 40 {
		t.Errorf("only %d rules were found", rules)
	}
}

// A file of settings is mounted as part of a folder, which Kubernetes keeps up to date, where the service looks for it, and
// it need not be there.
func TestSettingsFilesAreMounted(t *testing.T) {
	t.Parallel()
	for component, variable := range map[string]string{"core": "CORE_ENV_FILE", "gateway": "GATEWAY_ENV_FILE"} {
		for name, values := range releases {
			spec := templates(objects(t, values))[component].Spec
			path := settingsOf(t, spec.Containers[0])[variable]
			if name != "all on" {
				if path != "" || len(spec.Volumes) > 0 {
					t.Errorf("%s: %s looks for its settings in %q, %v", name, component, path, spec.Volumes)
				}
				continue
			}
			optional, mode := true, int32(0o444)
			want := []core.Volume{{Name: "settings", VolumeSource: core.VolumeSource{Secret: &core.SecretVolumeSource{
				SecretName: "intents-live", Optional: &optional, DefaultMode: &mode,
				Items: []core.KeyToPath{{Key: component + ".env", Path: filepath.Base(path)}},
			}}}}
			if diff := cmp.Diff(want, spec.Volumes); diff != "" {
				t.Errorf("%s: %s", component, diff)
			}
			mounts := []core.VolumeMount{{Name: "settings", MountPath: filepath.Dir(path), ReadOnly: true}}
			if diff := cmp.Diff(mounts, spec.Containers[0].VolumeMounts); diff != "" {
				t.Errorf("%s: %s", component, diff)
			}
		}
	}
}
