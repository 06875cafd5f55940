package manifests_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Helm accepts release names of 53 characters, and names with dots, which not every object's name may have. The API server checks
// that, but no schema does.
func TestChart_ReleaseNames(t *testing.T) {
	t.Parallel()
	values := strings.Replace(releases["all on"], "nameOverride: trial\n", "", 1)
	for _, release := range []string{"trial", "trial.eu.example", strings.Repeat("long", 13) + "r", strings.Repeat("a", 44) + ".tail"} {
		files, err := render(t, release, values)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range decode(t, files) {
			if faults := validation.IsDNS1035Label(object.GetName()); len(faults) > 0 {
				t.Errorf("%s: %T is called %s: %q", release, object, object.GetName(), faults)
			}
			for label, value := range object.GetLabels() {
				if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
					t.Errorf("%s: %T has %s=%s: %q", release, object, label, value, faults)
				}
			}
		}
	}
}

// helmWaits is Helm's default --timeout for a hook.
const helmWaits = 5 * time.Minute

// The job's network policy and service account are created before the job and deleted with it, so that the job never runs under
// another policy or none.
func TestChart_MigrateJobPolicy(t *testing.T) {
	t.Parallel()
	const when, deleted, weight = "helm.sh/hook", "helm.sh/hook-delete-policy", "helm.sh/hook-weight"
	for name, values := range releases {
		all := objects(t, values)
		job := of[*batch.Job](all)["trial-migrate"]
		if job == nil {
			continue
		}
		var before []object
		if policy := of[*networking.NetworkPolicy](all)["trial-migrate"]; policy != nil {
			before = append(before, policy)
		}
		if account := of[*core.ServiceAccount](all)["trial-migrate"]; account != nil {
			before = append(before, account)
		}
		if name != "little on" && len(before) != 2 {
			t.Errorf("%s: the job has %d of a policy and a service account", name, len(before))
		}
		for _, object := range before {
			for _, annotation := range []string{when, deleted} {
				if diff := cmp.Diff(job.Annotations[annotation], object.GetAnnotations()[annotation]); diff != "" {
					t.Errorf("%s: %s of the job and of its %T:\n%s", name, annotation, object, diff)
				}
			}
			first, err := strconv.Atoi(object.GetAnnotations()[weight])
			if err != nil || first >= 0 || job.Annotations[weight] != "" {
				t.Errorf("%s: the %T comes at %q, the job at %q", name, object, object.GetAnnotations()[weight], job.Annotations[weight])
			}
		}
		if limit := *job.Spec.ActiveDeadlineSeconds; limit >= int64(helmWaits/time.Second) {
			t.Errorf("%s: the job may take %d s, and Helm gives up before, taking the policy away", name, limit)
		}
		if want := []string{"pre-install", "pre-upgrade"}; !slices.Equal(strings.Split(job.Annotations[when], ","), want) {
			t.Errorf("%s: the job runs %s, want %q: a roll-back leaves the database as it is", name, job.Annotations[when], want)
		}
	}
}

// Pods do not change with the version of the chart, so that gateways with a pinned tag are not restarted.
func TestChart_PodsWithoutVersion(t *testing.T) {
	t.Parallel()
	for name, values := range releases {
		all := objects(t, values)
		deployment := of[*apps.Deployment](all)["trial-gateway"]
		for component, pod := range templates(all) {
			if component == "test" {
				continue // a pod of its own, which nothing restarts
			}
			for label, value := range pod.Labels {
				if deployment.Labels["helm.sh/chart"] == value || label == "app.kubernetes.io/version" {
					t.Errorf("%s: pods of %s have %s=%s", name, component, label, value)
				}
			}
		}
	}
}
