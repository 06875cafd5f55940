package manifests_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// identities are those of the objects, by kind and name.
func identities(all []object) map[string]identity {
	found := map[string]identity{}
	for _, object := range all {
		var is identity
		switch of := object.(type) {
		case *core.Service:
			is = identity{Selector: of.Spec.Selector, ClusterIP: of.Spec.ClusterIP}
		case *apps.Deployment:
			is = identity{Selector: of.Spec.Selector.MatchLabels, Labels: of.Spec.Template.Labels}
		}
		found[object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName()] = is
	}
	return found
}

func isPartOf(selector, pod map[string]string) bool {
	return labels.SelectorFromSet(selector).Matches(labels.Set(pod))
}

// `helm upgrade` from the chart of 0.1.0 needs no manual delete: nothing immutable changes, of what goes away the StatefulSet alone has pods,
// and the Services select the old pods of cores and gateways beside the new ones.
func TestChart_UpgradeFromFirst(t *testing.T) {
	t.Parallel()
	files, err := render(t, "intents", "secret: {name: intents}")
	if err != nil {
		t.Fatal(err)
	}
	now := identities(decode(t, files))
	text := read(t, "deploy/manifests/testdata/chart-0.1.0.json") // `identities` of that release's chart
	var before map[string]identity
	if err := json.Unmarshal([]byte(text), &before); err != nil {
		t.Fatal(err)
	}
	var removed []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		old := before[name]
		kept, ok := now[name]
		if !ok {
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
	if !strings.Contains(read(t, "deploy/helm.md"), "annotate statefulset intents-core helm.sh/resource-policy=keep\n") {
		t.Error("helm.md does not say how the pods of the StatefulSet are kept meanwhile")
	}
}
