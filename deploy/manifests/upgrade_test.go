package manifests_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// identity is what of an object an upgrade cannot change, and the labels of its pods.
type identity struct {
	// Selector is that of a workload's pods, which is immutable, or of a Service.
	Selector map[string]string `json:"selector,omitempty"`
	// Labels are those of a workload's pods.
	Labels map[string]string `json:"labels,omitempty"`
	// ClusterIP of a Service is immutable.
	ClusterIP string `json:"clusterIP,omitempty"`
}

// identities are those of the rendered objects, by kind and name.
func identities(t *testing.T, rendered map[string]string) map[string]identity {
	t.Helper()
	all := map[string]identity{}
	for _, text := range rendered {
		for document := range strings.SplitSeq(text, "\n---") {
			var object struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     struct {
					Selector  json.RawMessage
					ClusterIP string
					Template  struct {
						Metadata struct{ Labels map[string]string }
					}
				}
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.Kind == "" {
				continue // notes, and documents without an object
			}
			is := identity{ClusterIP: object.Spec.ClusterIP}
			var nested struct{ MatchLabels map[string]string }
			switch object.Kind {
			case "Service":
				_ = json.Unmarshal(object.Spec.Selector, &is.Selector)
			case "Deployment", "StatefulSet":
				_ = json.Unmarshal(object.Spec.Selector, &nested)
				is.Selector, is.Labels = nested.MatchLabels, object.Spec.Template.Metadata.Labels
			}
			all[object.Kind+" "+object.Metadata.Name] = is
		}
	}
	return all
}

func isPartOf(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

// `helm upgrade` from the chart of 0.1.0 needs no manual delete: nothing immutable changes, of what goes away the StatefulSet alone has pods,
// and the Services select the old pods of cores and gateways beside the new ones.
func TestChart_UpgradeFromFirst(t *testing.T) {
	t.Parallel()
	rendered, err := renderAs(t, "intents", "secret: {name: intents}")
	if err != nil {
		t.Fatal(err)
	}
	now := identities(t, rendered)
	text, err := os.ReadFile("testdata/chart-0.1.0.json") // `identities` of that release's chart
	if err != nil {
		t.Fatal(err)
	}
	var before map[string]identity
	if err := json.Unmarshal(text, &before); err != nil {
		t.Fatal(err)
	}
	var removed []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		old, kept := before[name], identity{}
		if is, ok := now[name]; ok {
			kept = is
		} else {
			removed = append(removed, name)
			continue
		}
		if strings.HasPrefix(name, "Deployment") && !cmp.Equal(old.Selector, kept.Selector) || old.ClusterIP != kept.ClusterIP {
			t.Errorf("%s changes what is immutable: %+v, %+v", name, old, kept)
		}
		if strings.HasPrefix(name, "Service ") {
			for workload, pods := range before {
				if len(pods.Labels) > 0 && isPartOf(old.Selector, pods.Labels) && !isPartOf(kept.Selector, pods.Labels) {
					t.Errorf("%s selects the pods of %s no more", name, workload)
				}
			}
		}
	}
	if diff := cmp.Diff([]string{"StatefulSet intents-core"}, removed); diff != "" {
		t.Errorf("an upgrade removes (-want +got):\n%s", diff)
	}
	page, err := os.ReadFile(root + "/deploy/helm.md")
	if err != nil || !strings.Contains(string(page), "annotate statefulset intents-core helm.sh/resource-policy=keep\n") {
		t.Errorf("helm.md does not say how the pods of the StatefulSet are kept meanwhile: %v", err)
	}
}
