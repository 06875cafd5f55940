package tracing_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/pkg/settings"
	"intents.internal/pkg/tracing"
)

func TestConfig_Faults(t *testing.T) {
	t.Parallel()
	faultsOf := func(c tracing.Config) []string {
		var faults settings.Faults
		if c.Check(&faults); faults.Err() == nil {
			return nil
		}
		return strings.Split(faults.Err().Error(), "\n")
	}
	if faults := faultsOf(tracing.Config{}); len(faults) != 0 {
		t.Errorf("the zero value: %v", faults)
	}
	good := tracing.Config{
		Endpoint: "https://collector.example:4318/otlp", Headers: "a=b, c=d%2Ce", Sampler: "parentbased_traceidratio", Ratio: 1,
		ResourceAttributes: "service.namespace=intents,",
	}
	if faults := faultsOf(good); len(faults) != 0 {
		t.Errorf("a good one: %v", faults)
	}
	bad := tracing.Config{
		Endpoint: "collector:4318", Headers: "secret", Sampler: "parentbased_jaeger_remote", Ratio: 2, ResourceAttributes: "a=%zz",
	}
	var variables []string
	for _, text := range faultsOf(bad) {
		variable, text, _ := strings.Cut(text, " ")
		variables = append(variables, variable)
		if strings.Contains(text, "secret") {
			t.Errorf("a fault repeats what may be secret: %s", text)
		}
	}
	want := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_RESOURCE_ATTRIBUTES",
	}
	if diff := cmp.Diff(want, variables); diff != "" {
		t.Error(diff)
	}
	for _, endpoint := range []string{"http://user:password@collector", "ftp://collector", "http://", "http://c?x=1", "http://c#x"} {
		faults := faultsOf(tracing.Config{Endpoint: endpoint})
		if len(faults) != 1 || strings.Contains(faults[0], "password") {
			t.Errorf("%s: %v", endpoint, faults)
		}
		if _, err := tracing.New(tracing.Config{Service: "test", Endpoint: endpoint}, slog.New(slog.DiscardHandler), prometheus.NewRegistry()); err == nil {
			t.Errorf("%s makes a tracer", endpoint)
		}
	}
	if text := fmt.Sprintf("%v %+v", good, good); strings.Contains(text, "d%2Ce") {
		t.Errorf("the headers are shown: %s", text)
	}
}
