package manifests_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/engine"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	gateways "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// Values reach every pod that they are about: containers, environment, placement, service account with its role, label and annotation.
func TestChart_PodValues(t *testing.T) {
	t.Parallel()
	all := objects(t, releases["all on"])
	got := map[string][]string{}
	for component, pod := range templates(all) {
		var has []string
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			for _, from := range c.EnvFrom {
				switch {
				case from.SecretRef != nil:
					has = append(has, "from "+from.SecretRef.Name)
				case from.ConfigMapRef != nil:
					has = append(has, "from "+from.ConfigMapRef.Name)
				}
			}
			has = append(has, c.Name)
		}
		for _, spread := range pod.Spec.TopologySpreadConstraints {
			has = append(has, spread.TopologyKey)
		}
		for _, secret := range pod.Spec.ImagePullSecrets {
			has = append(has, "pulled with "+secret.Name)
		}
		if account := of[*core.ServiceAccount](all)[pod.Spec.ServiceAccountName]; account != nil {
			has = append(has, "as "+account.Name, "role "+account.Annotations["example.com/role"])
		}
		for _, name := range []string{"example.com/owner", "example.com/team"} {
			has = append(has, pod.Labels[name])
		}
		got[component] = append(has, pod.Annotations["example.com/a"])
	}
	want := map[string][]string{
		"core": {
			"waits", "from cores", "core", "proxy", "kubernetes.io/hostname", "topology.kubernetes.io/zone",
			"pulled with registry", "as cores-of-trial", "role cores", "payments", "money", "b",
		},
		"gateway": {
			"waits", "from gateways", "gateway", "proxy", "example.com/rack",
			"pulled with registry", "as trial-gateway", "role gateways", "payments", "edge", "b",
		},
		"migrate": {
			"proxy", "from migrations", "migrate", "from migrations", "chains", "from migrations", "tokens",
			"pulled with registry", "as trial-migrate", "role migrations", "payments", "migrations", "",
		},
		"test": {"health", "pulled with registry", "payments", "", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, object := range all {
		if object.GetLabels()["example.com/owner"] != "payments" {
			t.Errorf("%T %s lacks the common label", object, object.GetName())
		}
	}
}

// Every value of "all on" has a place in the manifests: without it they are others.
func TestChart_ValuesUsed(t *testing.T) {
	t.Parallel()
	const scaled = "core.replicas" // the autoscaler decides
	whole, err := render(t, "another", releases["all on"])
	if err != nil {
		t.Fatal(err)
	}
	all := parse(t, releases["all on"])
	var walk func(path string, values map[string]any)
	walk = func(path string, values map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			value := values[key]
			if nested, ok := value.(map[string]any); ok && len(nested) > 0 {
				walk(path+key+".", nested)
				continue
			}
			delete(values, key)
			text, err := yaml.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			if without, err := render(t, "another", string(text)); err == nil && maps.Equal(whole, without) != (path+key == scaled) {
				t.Errorf("%s%s: the manifests without it are the same: %t", path, key, path+key != scaled)
			}
			values[key] = value
		}
	}
	walk("", all)
}

// Service accounts that the chart does not create are those of values, or the namespace's.
func TestChart_OtherServiceAccounts(t *testing.T) {
	t.Parallel()
	all := objects(t, releases["little on"])
	if made := of[*core.ServiceAccount](all); len(made) > 0 {
		t.Errorf("made %v", made)
	}
	for component, want := range map[string]string{"core": "default", "gateway": "there", "migrate": "there"} {
		if got := templates(all)[component].Spec.ServiceAccountName; got != want {
			t.Errorf("%s runs as %q, want %q", component, got, want)
		}
	}
}

// A digest takes the place of every tag, and another name that of the release in all names.
func TestChart_DigestAndName(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("5e", 32)
	all := objects(t, "secret: {name: intents}\nnameOverride: money\nimage: {tag: v1}\ncore: {image: {tag: v2, digest: \""+digest+"\"}}")
	for component, want := range map[string]string{"core": "core@" + digest, "migrate": "core@" + digest, "gateway": "gateway:v1"} {
		if got := templates(all)[component].Spec.Containers[0].Image; got != "transfer-intents/"+want {
			t.Errorf("%s runs %s, want %s", component, got, want)
		}
	}
	for _, object := range all {
		if !strings.HasPrefix(object.GetName(), "money-") {
			t.Errorf("%T is called %s", object, object.GetName())
		}
	}
}

// Clients come by every host of the ingress, or by the Gateways of a route, to the public port alone.
func TestChart_Hosts(t *testing.T) {
	t.Parallel()
	all := objects(t, releases["all on"])
	ingress := of[*networking.Ingress](all)["trial-gateway"]
	hosts := []string{}
	for _, rule := range ingress.Spec.Rules {
		hosts = append(hosts, rule.Host)
		if to := rule.HTTP.Paths[0].Backend.Service; to.Name != "trial-gateway" || to.Port.Name != "public" {
			t.Errorf("%s leads to %v", rule.Host, to)
		}
	}
	if diff := cmp.Diff([][]string{{"intents.example.com", "api.example.com"}, hosts}, [][]string{hosts, ingress.Spec.TLS[0].Hosts}); diff != "" {
		t.Errorf("hosts of rules and of the certificate: %s", diff)
	}
	route := of[*gateways.HTTPRoute](all)["trial-gateway"]
	to := route.Spec.Rules[0].BackendRefs[0]
	if to.Name != "trial-gateway" || *to.Port != 443 || route.Spec.ParentRefs[0].Name != "public" || *route.Spec.Rules[0].Timeouts.Request != "60s" {
		t.Errorf("the route: %+v", route.Spec)
	}
	service := of[*core.Service](all)["trial-gateway"].Spec
	if *service.IPFamilyPolicy != core.IPFamilyPolicyPreferDualStack || !slices.Equal(service.IPFamilies, []core.IPFamily{core.IPv6Protocol, core.IPv4Protocol}) {
		t.Errorf("families of addresses: %v %v", *service.IPFamilyPolicy, service.IPFamilies)
	}
}

// The ConfigMap has the dashboards of deploy/grafana unchanged.
func TestChart_Dashboards(t *testing.T) {
	t.Parallel()
	got := of[*core.ConfigMap](objects(t, releases["all on"]))["trial-dashboards"]
	want := map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, "deploy/grafana/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.Base(file)] = string(text)
	}
	if diff := cmp.Diff(want, got.Data); diff != "" || got.Labels["grafana_dashboard"] != "1" {
		t.Errorf("labels %v, dashboards: %s", got.Labels, diff)
	}
}

// cluster has objects that templates look up.
type cluster struct{ dynamic.Interface }

func (c cluster) GetClientFor(_, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return c.Resource(schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(kind) + "s"}), true, nil
}

// An upgrade replaces the pods that read what has changed of a Secret or ConfigMap, and no others.
func TestChart_SecretsChecksum(t *testing.T) {
	t.Parallel()
	const values = `
secret: {name: intents, settingsFiles: files}
certificateAuthorities: {configMap: authorities}
`
	// hashes are the annotations of pods of core and gateway, where this key of this object has this value.
	hashes := func(values, object, key, value string) [2]string {
		t.Helper()
		data := map[string]map[string]string{
			"intents": {"database-url": "a", "redis-url": "b", "gateway-secret": "c", "of-others": "d"},
			"files":   {"core.env": "e", "gateway.env": "f"}, "authorities": {"ca.crt": "g"},
		}
		if object != "" {
			data[object][key] = value
		}
		named := func(name string) meta.ObjectMeta { return meta.ObjectMeta{Name: name, Namespace: "intents"} }
		secret := func(name string) *core.Secret {
			raw := map[string][]byte{}
			for key, value := range data[name] {
				raw[key] = []byte(value)
			}
			return &core.Secret{ObjectMeta: named(name), Data: raw}
		}
		client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, secret("intents"), secret("files"),
			&core.ConfigMap{ObjectMeta: named("authorities"), Data: data["authorities"]})
		loaded, all, err := release(t, "trial", values)
		if err != nil {
			t.Fatal(err)
		}
		files, err := engine.RenderWithClientProvider(loaded, all, cluster{client})
		if err != nil {
			t.Fatal(err)
		}
		pods := templates(decode(t, files))
		return [2]string{pods["core"].Annotations["checksum/secrets"], pods["gateway"].Annotations["checksum/secrets"]}
	}
	before := hashes(values, "", "", "")
	if before[0] == "" || before[1] == "" || before != hashes(values, "", "", "") {
		t.Fatalf("hashes %q", before)
	}
	for _, c := range []struct {
		object, key   string
		core, gateway bool
	}{
		{"intents", "database-url", true, false},
		{"intents", "redis-url", true, true},
		{"intents", "gateway-secret", true, true},
		{"intents", "gateway-secret-previous", true, false},
		{"intents", "of-others", false, false},
		{"files", "core.env", true, false},
		{"files", "gateway.env", false, true},
		{"authorities", "ca.crt", true, true},
	} {
		after := hashes(values, c.object, c.key, "another")
		if got := [2]bool{after[0] != before[0], after[1] != before[1]}; got != [2]bool{c.core, c.gateway} {
			t.Errorf("%s of %s: cores and gateways are replaced: %v", c.key, c.object, got)
		}
	}
	if got := hashes(strings.Replace(values, "files}", "files, checksum: false}", 1), "", "", ""); got != [2]string{} {
		t.Errorf("without checksum: %q", got)
	}
	if got := templates(objects(t, values))["core"].Annotations; len(got) > 0 {
		t.Errorf("where no cluster is seen: %v", got)
	}
}
