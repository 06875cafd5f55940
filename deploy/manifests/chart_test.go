package manifests_test

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	gateways "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// releases are configurations of the chart that together cover every branch of its templates.
var releases = map[string]string{
	"as it is": "secret: {name: intents}",
	"all on": `
nameOverride: trial
commonLabels: {example.com/owner: payments}
secret:
  name: intents
  settingsFiles: intents-settings
  keys: {migrateDatabaseURL: migrate-database-url, readDatabaseURL: read-database-url, rpcFile: rpc.json, quotesFile: quotes.json}
screening: {configMap: lists, files: [ofac-ETH.txt, own.json], contact: "https://example.com/appeals"}
image: {registry: registry.example.com/team, tag: v9, pullSecrets: [{name: registry}]}
gateway:
  image: {tag: v8}
  settings: {GATEWAY_KEY_TTL: 10m, GATEWAY_ACCESS_LOG: "false", OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.monitoring:4320"}
  trustedProxies: [10.0.0.0/8, "fd00::/8"]
  podAnnotations: {example.com/a: b}
  podLabels: {example.com/team: edge}
  initContainers: [{name: waits, image: registry.example.com/proxy:1, resources: {limits: {memory: 32Mi}}, securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
  extraContainers: [{name: proxy, image: registry.example.com/proxy:1, resources: {limits: {memory: 32Mi}}, securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
  extraEnvFrom: [{configMapRef: {name: gateways}}]
  serviceAccount: {annotations: {example.com/role: gateways}}
  topologySpreadConstraints: [{maxSkew: 2, topologyKey: example.com/rack, whenUnsatisfiable: DoNotSchedule}]
  nodeSelector: {example.com/pool: edge}
  tolerations: [{key: edge, operator: Exists}]
  affinity: {nodeAffinity: {}}
  priorityClassName: high
  extraVolumes: [{name: redis-client, secret: {secretName: redis-client}}]
  extraVolumeMounts: [{name: redis-client, mountPath: /etc/redis-client, readOnly: true}]
core:
  replicas: 3
  extraVolumes: [{name: client, secret: {secretName: client}}]
  extraVolumeMounts: [{name: client, mountPath: /etc/client, readOnly: true}]
  settings: {CORE_SIGN_UP: closed, CORE_OIDC_ISSUER: "https://id.example.com", CORE_OIDC_CLIENT_ID: intents, CORE_SMTP_FROM: no-reply@example.com, CORE_WEBHOOK_ALLOW: "10.20.0.0/16, fd00:20::/64", CORE_QUOTES_ALLOW: "10.30.0.0/16, fd00:30::/64", OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.monitoring:4320"}
  podAnnotations: {example.com/a: b}
  podLabels: {example.com/team: money}
  initContainers: [{name: waits, image: registry.example.com/proxy:1, resources: {limits: {memory: 32Mi}}, securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
  extraContainers: [{name: proxy, image: registry.example.com/proxy:1, resources: {limits: {memory: 32Mi}}, securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
  extraEnvFrom: [{secretRef: {name: cores}}]
  autoscaling: {enabled: true, maxReplicas: 9, cpuUtilization: 60}
  serviceAccount: {name: cores-of-trial, annotations: {example.com/role: cores}}
migrate:
  podLabels: {example.com/team: migrations}
  initContainers: [{name: proxy, image: registry.example.com/proxy:1, restartPolicy: Always, resources: {limits: {memory: 32Mi}}, securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
  extraEnvFrom: [{secretRef: {name: migrations}}]
  serviceAccount: {annotations: {example.com/role: migrations}}
service: {type: LoadBalancer, port: 443, annotations: {example.com/tls: yes}, externalTrafficPolicy: Local, ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv4]}
ingress: {enabled: true, className: nginx, annotations: {example.com/a: b}, tlsSecret: tls, hosts: [api.example.com]}
httpRoute: {enabled: true, annotations: {example.com/a: b}, parentRefs: [{name: public, namespace: gateways}], hostnames: [intents.example.com], timeouts: {request: 60s}}
dashboards: {enabled: true}
networkPolicy:
  clients: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress}}}]
  postgres: {port: 6432, readPort: 6433, peers: [{ipBlock: {cidr: 10.1.0.0/16}}]}
  traces: {port: 4320, peers: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}
  private: [44.128.0.0/16, "2a00:1234::/32"]
autoscaling: {requestsPerSecond: 1000}
certificateAuthorities: {configMap: authorities, secret: authority}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true, labels: {release: prometheus}, runbookURL: "https://wiki.example/runbook"}
`,
	"little on": `
secret: {name: intents}
autoscaling: {enabled: false}
gateway: {serviceAccount: {create: false, name: there}}
core: {serviceAccount: {create: false}}
migrate: {importDefaults: false, serviceAccount: {create: false, name: there}}
networkPolicy: {enabled: false}
podDisruptionBudget: {enabled: false}
`,
	"on a cluster": `
secret: {name: intents}
redis: {mode: cluster}
`,
	"without the job": `
secret: {name: intents, keys: {webhookSecretKey: ""}}
redis: {mode: sentinel}
migrate: {enabled: false}
networkPolicy: {operators: []}
core: {replicas: 1}
`,
}

const chartDir = root + "/deploy/helm"

func parse(t *testing.T, values string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(values, ": yes}", ": \"yes\"}")), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// `helm lint --strict` reports nothing.
func TestChart_Lint(t *testing.T) {
	t.Parallel()
	for name, values := range releases {
		for _, message := range lint.RunAll(chartDir, parse(t, values), "intents").Messages {
			if !strings.Contains(message.Error(), "icon is recommended") {
				t.Errorf("%s: %s", name, message)
			}
		}
	}
}

// release is the chart, and what its templates read for a release of this name.
func release(t *testing.T, name, values string) (*chart.Chart, common.Values, error) {
	t.Helper()
	loaded, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	options := common.ReleaseOptions{Name: name, Namespace: "intents", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(loaded, parse(t, values), options, common.DefaultCapabilities)
	return loaded, all, err
}

func render(t *testing.T, name, values string) (map[string]string, error) {
	t.Helper()
	loaded, all, err := release(t, name, values)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.RenderWithContext(t.Context(), loaded, all)
}

// Invalid values fail before anything is installed.
func TestChart_InvalidValues(t *testing.T) {
	t.Parallel()
	const ok = "secret: {name: intents}\n"
	for name, c := range map[string]struct{ values, fault string }{
		"no Secret":                     {"{}", "secret.name is required"},
		"a value that nobody knows":     {ok + "gatway: {replicas: 3}", "gatway"},
		"a setting of the other":        {ok + "core: {settings: {GATEWAY_KEY_TTL: 5m}}", "GATEWAY_KEY_TTL"},
		"a private range of no family":  {ok + "networkPolicy: {private: [\"fd00::/8\"]}", "private"},
		"a setting that is no text":     {ok + "gateway: {settings: {GATEWAY_KEY_CACHE: 5}}", "GATEWAY_KEY_CACHE"},
		"a Redis of no kind":            {ok + "redis: {mode: ring}", "mode"},
		"no core":                       {ok + "core: {replicas: 0}", "replicas"},
		"more cores than a gateway can": {ok + "core: {replicas: 65}", "replicas"},
		"alerts without a runbook":      {ok + "prometheusRule: {enabled: true}", "prometheusRule.runbookURL is required"},
		"a runbook that is no URL":      {ok + "prometheusRule: {enabled: true, runbookURL: deploy/RUNBOOK.md}", "runbookURL"},
		"a common label of selectors":   {ok + "commonLabels: {app.kubernetes.io/component: other}", "app.kubernetes.io/component"},
		"a digest that is none":         {ok + "core: {image: {digest: latest}}", "digest"},
		"a route to no Gateway":         {ok + "httpRoute: {enabled: true}", "httpRoute.parentRefs is required"},
		"a label of the selector":       {ok + "core: {podLabels: {app.kubernetes.io/name: other}}", "app.kubernetes.io/name"},
		"lists without a file":          {ok + "screening: {configMap: lists}", "files"},
		"lists from two places":         {ok + "screening: {configMap: lists, files: [own.txt]}\ncore: {settings: {CORE_SCREENING_FILE: /own.txt}}", "both name files"},
		"a public URL with a path":      {ok + "publicURL: https://a.example/b", "publicURL"},
	} {
		if _, err := render(t, "trial", c.values); err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A packer that leaves symbolic links out, such as Flux's, leaves a chart without rules and dashboards: no alerts may not look like alerts.
func TestChart_WithoutLinks(t *testing.T) {
	t.Parallel()
	for values, fault := range map[string]string{
		"secret: {name: intents}": "",
		"secret: {name: intents}\nprometheusRule: {enabled: true, runbookURL: \"https://wiki.example/runbook\"}": "this chart has no rules/*.yml",
		"secret: {name: intents}\ndashboards: {enabled: true}":                                                   "this chart has no dashboards/*.json",
	} {
		loaded, all, err := release(t, "trial", values)
		if err != nil {
			t.Fatal(err)
		}
		loaded.Files = slices.DeleteFunc(loaded.Files, func(f *common.File) bool {
			return strings.HasPrefix(f.Name, "rules/") || strings.HasPrefix(f.Name, "dashboards/")
		})
		_, err = engine.Engine{Strict: true}.RenderWithContext(t.Context(), loaded, all)
		if (fault == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// What the chart sets itself, such as secrets and the paths of mounts, cannot be among the settings of values, but for a default and for
// lists of addresses larger than a ConfigMap, which the chart refuses beside its own.
func TestChart_OwnSettings(t *testing.T) {
	t.Parallel()
	const overridden = "GATEWAY_MAX_CONNS_PER_IP"
	const larger = "CORE_SCREENING_FILE"
	for component, pod := range templates(objects(t, releases["all on"])) {
		for setting := range settingsOf(t, pod.Spec.Containers[0]) {
			if component == "migrate" || setting == overridden || setting == larger || strings.Contains(releases["all on"], setting+":") {
				continue
			}
			values := "secret: {name: intents}\n" + component + ": {settings: {" + setting + ": hush}}"
			if _, err := render(t, "trial", values); err == nil || !strings.Contains(err.Error(), setting) {
				t.Errorf("%s is taken from the settings of %s: %v", setting, component, err)
			}
		}
	}
	given := templates(objects(t, "secret: {name: intents}\ngateway: {trustedProxies: [10.0.0.0/8], settings: {"+overridden+": \"9\"}}"))["gateway"]
	if got := settingsOf(t, given.Spec.Containers[0])[overridden]; got != "9" {
		t.Errorf("%s is %s, want what values set", overridden, got)
	}
}

// object is what every manifest is.
type object interface {
	runtime.Object
	meta.Object
}

// objects are the objects of a release, decoded into their types. An object of an unknown type, or with an unknown field, fails
// the test.
func objects(t *testing.T, values string) []object {
	t.Helper()
	files, err := render(t, "trial", values)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, files)
}

// decode are the objects of rendered files.
func decode(t *testing.T, files map[string]string) (all []object) {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoring.AddToScheme, gateways.Install} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(file) != ".yaml" {
			continue
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(files[file])))
		for {
			text, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var fields map[string]any
			if err := errors.Join(err, yaml.Unmarshal(text, &fields)); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, text)
			}
			if len(fields) == 0 {
				continue // nothing but comments
			}
			decoded, _, err := decoder.Decode(text, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", file, err, text)
			}
			all = append(all, decoded.(object))
		}
	}
	return all
}

// of returns the objects of one type by name.
func of[T object](all []object) map[string]T {
	found := map[string]T{}
	for _, object := range all {
		if one, ok := object.(T); ok {
			found[one.GetName()] = one
		}
	}
	return found
}
