package manifests_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	podsecurity "k8s.io/pod-security-admission/api"
	standards "k8s.io/pod-security-admission/policy"
)

// templates are the pod templates of a release by component.
func templates(all []object) map[string]*core.PodTemplateSpec {
	pods := map[string]*core.PodTemplateSpec{}
	for _, object := range of[*apps.Deployment](all) {
		pods[object.Labels["app.kubernetes.io/component"]] = &object.Spec.Template
	}
	for _, object := range of[*core.Pod](all) {
		pods["test"] = &core.PodTemplateSpec{ObjectMeta: object.ObjectMeta, Spec: object.Spec}
	}
	for _, object := range of[*batch.Job](all) {
		pods["migrate"] = &object.Spec.Template
	}
	return pods
}

// own are the containers of a pod that run the service's programs, and not a sidecar of values.
func own(pod *core.PodTemplateSpec) []core.Container {
	return slices.DeleteFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c core.Container) bool {
		return !strings.Contains(c.Image, "transfer-intents/")
	})
}

// Every pod conforms to the restricted profile of Kubernetes' pod security standards and has a read-only root file system.
func TestChart_RestrictedPods(t *testing.T) {
	t.Parallel()
	evaluator, err := standards.NewEvaluator(standards.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for name, values := range releases {
		for component, pod := range templates(objects(t, values)) {
			for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s: %s", name, component, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			if mounted := pod.Spec.AutomountServiceAccountToken; mounted == nil || *mounted {
				t.Errorf("%s: %s can speak to Kubernetes", name, component)
			}
			if links := pod.Spec.EnableServiceLinks; links == nil || *links {
				t.Errorf("%s: %s has variables of every service", name, component)
			}
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				if !*c.SecurityContext.ReadOnlyRootFilesystem || c.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s: %s: %s can write, or has no bound of memory", name, component, c.Name)
				}
				if bound, ok := settingsOf(t, c)["GOMEMLIMIT"]; ok {
					checkMemory(t, name+": "+c.Name, bound, c.Resources.Limits.Memory().Value())
				}
			}
		}
	}
}

// settingsOf are a container's settings with random secrets.
func settingsOf(t *testing.T, c core.Container) map[string]string {
	t.Helper()
	made := map[string]string{
		"database-url": "postgres://intents:hush@db/intents", "migrate-database-url": "postgres://intents:hush@db/intents",
		"read-database-url": "postgres://intents:hush@replica/intents", "redis-url": "redis://:hush@redis:6379/0",
		"gateway-secret": strings.Repeat("5ec2e7", 6), "gateway-secret-previous": strings.Repeat("01d5ec2e7", 4),
		"oidc-client-secret": "hush", "smtp-url": "smtp://intents:hush@mail.example.com", "webhook-secret-key": strings.Repeat("5e", 32), "webhook-secret-key-previous": strings.Repeat("c2", 32),
	}
	mayLack := []string{"CORE_GATEWAY_SECRET_PREVIOUS", "CORE_WEBHOOK_SECRET_KEY", "CORE_WEBHOOK_SECRET_KEY_PREVIOUS"}
	settings := map[string]string{}
	for _, env := range c.Env {
		value := env.Value
		if env.ValueFrom != nil {
			value = made[env.ValueFrom.SecretKeyRef.Key]
			ref := env.ValueFrom.SecretKeyRef
			optional := ref.Optional != nil && *ref.Optional
			if ref.Name != "intents" || value == "" || optional != slices.Contains(mayLack, env.Name) {
				t.Errorf("%s comes from %v", env.Name, ref)
			}
		}
		if _, twice := settings[env.Name]; twice {
			t.Errorf("%s is set twice", env.Name)
		}
		settings[env.Name] = value
	}
	for _, service := range []string{"CORE", "GATEWAY"} {
		if settings[service+"_REDIS_MODE"] == "sentinel" {
			settings[service+"_REDIS_URL"] += "?master_name=buckets"
		}
	}
	return settings
}

// The services accept the settings of every release and have enough time to stop, and the commands of jobs exist.
func TestChart_Settings(t *testing.T) {
	t.Parallel()
	mounted := filepath.Join(t.TempDir(), "settings.env")
	if err := os.WriteFile(mounted, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, values := range releases {
		pods := templates(objects(t, values))
		for _, component := range []string{"core", "gateway"} {
			spec := pods[component].Spec
			settings := settingsOf(t, spec.Containers[0])
			if file := strings.ToUpper(component) + "_ENV_FILE"; settings[file] != "" {
				settings[file] = mounted
			}
			accepts(t, component, settings)
			grace := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
			if need := patience(t, settings, slowest[component]...); grace < need+5*time.Second {
				t.Errorf("%s: %s is killed after %s, and may take %s", name, component, grace, need)
			}
		}
		job, ok := pods["migrate"]
		if !ok {
			continue
		}
		for _, c := range own(job) {
			runs(t, c.Args, settingsOf(t, c))
		}
	}
}

// Gateways find all cores, ready or not, by one DNS name, which does not depend on their number.
func TestChart_CoreDiscovery(t *testing.T) {
	t.Parallel()
	for name, values := range releases {
		all := objects(t, values)
		service := of[*core.Service](all)["trial-core"]
		if service == nil || service.Spec.ClusterIP != core.ClusterIPNone || !service.Spec.PublishNotReadyAddresses {
			t.Fatalf("%s: cores have no names: %v", name, service)
		}
		want := "http://" + service.Name + ".intents.svc:8081"
		if diff := cmp.Diff(want, settingsOf(t, templates(all)["gateway"].Spec.Containers[0])["GATEWAY_CORE_URL"]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	const before = "secret: {name: intents}\ncertificateAuthorities: {configMap: authorities}\n"
	two, ten := templates(objects(t, before))["gateway"], templates(objects(t, before+"core: {replicas: 10}"))["gateway"]
	if diff := cmp.Diff(two, ten); diff != "" {
		t.Errorf("more cores restart gateways:\n%s", diff)
	}
}

// Selectors match exactly the pods of the component that their object is named for, and every port is a port of theirs.
func TestSelectors(t *testing.T) {
	t.Parallel()
	for name, values := range releases {
		all := objects(t, values)
		pods := templates(all)
		for _, object := range all {
			component, _, _ := strings.Cut(strings.TrimPrefix(object.GetName(), "trial-"), "-")
			for _, selector := range selectors(object) {
				for other, pod := range pods {
					if labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) != (other == component) {
						t.Errorf("%s: %T %s and the pods of %s", name, object, object.GetName(), other)
					}
				}
			}
		}
		for deployment, object := range of[*apps.Deployment](all) {
			if update := object.Spec.Strategy.RollingUpdate; update.MaxUnavailable.IntValue() != 0 || update.MaxSurge.IntValue() != 1 {
				t.Errorf("%s: a rollout of %s takes pods away before others are ready: %v", name, deployment, update)
			}
			c := object.Spec.Template.Spec.Containers[0]
			for _, probe := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if probe == nil || !hasPort(&object.Spec.Template, probe.HTTPGet.Port.StrVal) || probe.HTTPGet.Port.StrVal != "operators" {
					t.Errorf("%s: %s is probed by %v", name, c.Name, probe)
				}
			}
		}
		for _, service := range of[*core.Service](all) {
			for _, port := range service.Spec.Ports {
				if !hasPort(pods[service.Labels["app.kubernetes.io/component"]], port.TargetPort.StrVal) {
					t.Errorf("%s: %s leads to no port: %v", name, service.Name, port)
				}
			}
		}
		for _, monitor := range of[*monitoring.ServiceMonitor](all) {
			if !slices.ContainsFunc(slices.Collect(maps.Values(of[*core.Service](all))), func(service *core.Service) bool {
				return isPartOf(monitor.Spec.Selector.MatchLabels, service.Labels) &&
					slices.ContainsFunc(service.Spec.Ports, func(p core.ServicePort) bool { return p.Name == monitor.Spec.Endpoints[0].Port })
			}) {
				t.Errorf("%s: the ServiceMonitor %s selects no port of a Service", name, monitor.Name)
			}
		}
		if public := of[*core.Service](all)["trial-gateway"]; len(public.Spec.Ports) != 1 || public.Spec.Ports[0].TargetPort.StrVal != "public" {
			t.Errorf("%s: the public Service shows %v", name, public.Spec.Ports)
		}
	}
}

// selectors are those that an object selects pods by.
func selectors(object object) (all []map[string]string) {
	switch of := object.(type) {
	case *apps.Deployment:
		all = append(all, of.Spec.Selector.MatchLabels)
		for _, spread := range of.Spec.Template.Spec.TopologySpreadConstraints {
			all = append(all, spread.LabelSelector.MatchLabels)
		}
	case *core.Service:
		all = append(all, of.Spec.Selector)
	case *policy.PodDisruptionBudget:
		all = append(all, of.Spec.Selector.MatchLabels)
	case *networking.NetworkPolicy:
		all = append(all, of.Spec.PodSelector.MatchLabels)
	}
	return all
}

func hasPort(pod *core.PodTemplateSpec, name string) bool {
	return slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p core.ContainerPort) bool { return p.Name == name })
}

// Only gateways can connect to cores, and no policy opens the operations ports to every pod.
func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	for name, values := range releases {
		all := objects(t, values)
		policies := of[*networking.NetworkPolicy](all)
		if len(policies) == 0 {
			if name != "little on" {
				t.Errorf("%s has no policies", name)
			}
			continue
		}
		for component, private := range map[string]int{"core": 8081, "gateway": 0, "migrate": -1, "test": -1} {
			object, found := policies["trial-"+component]
			if _, runs := templates(all)[component]; found != runs {
				t.Errorf("%s: %s has a policy: %v, and pods: %v", name, component, found, runs)
			}
			if !found {
				continue
			}
			if !slices.Equal(object.Spec.PolicyTypes, []networking.PolicyType{"Ingress", "Egress"}) {
				t.Errorf("%s: %s is bound for %v alone", name, component, object.Spec.PolicyTypes)
			}
			for _, rule := range object.Spec.Ingress {
				port := rule.Ports[0].Port.IntValue()
				ops := port == 9080 || port == 9081
				open := len(rule.From) == 0
				switch {
				case len(rule.Ports) != 1, private < 0, ops && open:
					t.Errorf("%s: %s lets in %v", name, component, rule)
				case port == private:
					want := []networking.NetworkPolicyPeer{{PodSelector: &meta.LabelSelector{
						MatchLabels: of[*apps.Deployment](all)["trial-gateway"].Spec.Selector.MatchLabels,
					}}}
					if diff := cmp.Diff(want, rule.From); diff != "" {
						t.Errorf("%s: who reaches %s: %s", name, component, diff)
					}
				}
			}
			sentinels := false
			for _, rule := range object.Spec.Egress {
				if len(rule.Ports) == 0 && len(rule.To) == 0 {
					t.Errorf("%s: %s may go anywhere", name, component)
				}
				sentinels = sentinels || len(rule.Ports) == 1 && rule.Ports[0].Port.IntValue() == 26379
			}
			if want := (component == "core" || component == "gateway") && strings.Contains(values, "mode: sentinel"); sentinels != want {
				t.Errorf("%s: %s may reach Sentinels: %v", name, component, sentinels)
			}
		}
	}
}

// Pods reach what they need, and no more: names, Postgres, Redis, and cores and gateways as pods of theirs. TestCoreEgress has the addresses.
func TestNetworkPolicies_Egress(t *testing.T) {
	t.Parallel()
	got := map[string][]string{}
	for name, object := range of[*networking.NetworkPolicy](objects(t, releases["as it is"])) {
		for _, rule := range object.Spec.Egress {
			to := ""
			for _, peer := range rule.To {
				if peer.PodSelector != nil {
					to = " of " + peer.PodSelector.MatchLabels["app.kubernetes.io/component"]
				}
			}
			for _, port := range rule.Ports {
				got[name] = append(got[name], port.Port.String()+to)
			}
		}
	}
	want := map[string][]string{
		"trial-core":    {"53", "53", "5432", "6379", "80", "443"},
		"trial-gateway": {"53", "53", "8081 of core", "6379"},
		"trial-migrate": {"53", "53", "5432"},
		"trial-test":    {"53", "53", "8080 of gateway"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAutoscaling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, component string
		want            []string
	}{
		{"as it is", "gateway", []string{"cpu"}},
		{"all on", "gateway", []string{"intents_gateway_requests_per_second", "cpu"}},
		{"little on", "gateway", nil},
		{"as it is", "core", nil},
		{"all on", "core", []string{"cpu"}},
	} {
		name, want := c.name+", "+c.component, c.want
		all := objects(t, releases[c.name])
		deployment := of[*apps.Deployment](all)["trial-"+c.component]
		scaler := of[*autoscaling.HorizontalPodAutoscaler](all)["trial-"+c.component]
		if (scaler == nil) != (want == nil) || (scaler == nil) == (deployment.Spec.Replicas == nil) {
			t.Errorf("%s: who says how many there are? %v %v", name, scaler, deployment.Spec.Replicas)
		}
		if scaler == nil {
			continue
		}
		var got []string
		for _, metric := range scaler.Spec.Metrics {
			if metric.Pods != nil {
				got = append(got, metric.Pods.Metric.Name)
			} else {
				got = append(got, string(metric.Resource.Name))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || scaler.Spec.ScaleTargetRef.Name != deployment.Name || scaler.Spec.ScaleTargetRef.Kind != "Deployment" {
			t.Errorf("%s: %v %s", name, scaler.Spec.ScaleTargetRef, diff)
		}
	}
	adapter := read(t, "deploy/helm/prometheus-adapter.yaml")
	if !strings.Contains(adapter, "as: intents_gateway_requests_per_second") || !strings.Contains(adapter, "intents_gateway_requests_total{") ||
		!strings.Contains(read(t, "gateway/edge/metrics.go"), `"intents_gateway_requests_total"`) {
		t.Error("nobody serves the metric that gateways are scaled by")
	}
}
