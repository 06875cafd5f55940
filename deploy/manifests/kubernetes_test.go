package manifests_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/validator"
)

// kubernetes are the versions whose schemas every release is validated with: the oldest that the chart supports, and a recent
// one. The schemas are in Kubernetes' source, which is a Go module.
var kubernetes = []struct{ version, sum string }{
	{"v1.29.6", "h1:jn8kA/oVOAWZOeoorx6xZ4d+KgGp+Evgi90x9bEI/DE="},
	{"v1.36.3", "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o="},
}

// custom resources have no schemas there; their fields are checked when they are decoded.
var custom = map[string]struct{}{"ServiceMonitor": {}, "PrometheusRule": {}, "HTTPRoute": {}}

// Every object is valid by kubeconform with the schemas of these versions.
func TestChart_KubernetesSchemas(t *testing.T) {
	t.Parallel()
	for _, k := range kubernetes {
		t.Run(k.version, func(t *testing.T) {
			t.Parallel()
			conform := conformer(t, schemas(t, k.version, k.sum))
			checked := 0
			for name, values := range releases {
				for _, result := range conform(render(t, "trial", values)) {
					switch result.Status {
					case validator.Valid:
						checked++
					case validator.Empty, validator.Skipped:
					default:
						t.Errorf("%s: %s: %v %v", name, result.Resource.Path, result.Err, result.ValidationErrors)
					}
				}
			}
			t.Logf("%d objects conform", checked)
			if checked < 30 {
				t.Error("too few objects were looked at")
			}
		})
	}
}

// conformer validates rendered files with the schemas of this directory.
func conformer(t *testing.T, folder string) func(files map[string]string, err error) []validator.Result {
	t.Helper()
	check, err := validator.New([]string{folder + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"}, validator.Opts{Strict: true, SkipKinds: custom})
	if err != nil {
		t.Fatal(err)
	}
	return func(files map[string]string, err error) []validator.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var all []validator.Result
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if filepath.Ext(file) == ".yaml" {
				all = append(all, check.Validate(file, io.NopCloser(strings.NewReader(files[file])))...)
			}
		}
		return all
	}
}

// schemas writes a JSON schema for each kind of object of this version of Kubernetes, from the OpenAPI document of its API server,
// and returns the directory. Unknown fields are invalid, as for kubectl.
func schemas(t *testing.T, version, sum string) (folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(source(t, version, sum), "api/openapi-spec/v3/*_openapi.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("schemas of %s: %q %v", version, files, err)
	}
	folder = t.TempDir()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var published struct {
			Components struct{ Schemas map[string]map[string]any }
		}
		text = []byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/definitions/"))
		if err := json.Unmarshal(text, &published); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, schema := range published.Components.Schemas {
			forbidOthers(schema)
		}
		for name, schema := range published.Components.Schemas {
			if of := fileOf(schema); of != "" {
				writeSchema(t, filepath.Join(folder, of), name, published.Components.Schemas)
			}
		}
	}
	return folder
}

// source is the directory of Kubernetes' source of this version, which the go command downloads if needed.
func source(t *testing.T, version, sum string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "k8s.io/kubernetes@"+version)
	command.Dir = t.TempDir() // outside every module
	said, err := command.Output()
	var module struct{ Dir, Sum, Error string }
	if err := errors.Join(err, json.Unmarshal(said, &module)); err != nil || module.Error != "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the schemas of Kubernetes %s cannot be had: %v %s", version, err, module.Error)
		}
		t.Skipf("not run: the schemas of Kubernetes %s cannot be had: %v %s", version, err, module.Error)
	}
	if module.Sum != sum {
		t.Fatalf("Kubernetes %s has the sum %s, want %s", version, module.Sum, sum)
	}
	return module.Dir
}

// fileOf is the file name of a schema for kubeconform, empty for a definition that is not an object.
func fileOf(schema map[string]any) string {
	kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
	if len(kinds) != 1 { // several are the options of requests
		return ""
	}
	kind, _ := kinds[0].(map[string]any)
	group, _ := kind["group"].(string)
	group, _, _ = strings.Cut(group, ".")
	name, _ := kind["kind"].(string)
	version, _ := kind["version"].(string)
	if group != "" {
		group = "-" + group
	}
	return strings.ToLower(name+group+"-"+version) + ".json"
}

// forbidOthers makes unknown fields of an object with named fields invalid.
func forbidOthers(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, named := s["properties"].(map[string]any); named && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		for _, part := range s {
			forbidOthers(part)
		}
	case []any:
		for _, part := range s {
			forbidOthers(part)
		}
	}
}

func writeSchema(t *testing.T, path, name string, definitions map[string]map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/" + name, "definitions": definitions,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
