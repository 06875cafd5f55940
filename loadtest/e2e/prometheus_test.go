package e2e_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
)

// monitoring is where the operators' files are.
const monitoring = "../../deploy/"

// prometheus scrapes the shared stack with the configuration and the rules which the repository ships.
type prometheus struct {
	*system.Prometheus
	t *testing.T
}

// startPrometheus runs it until the test ends. It scrapes the stack's gateways and these cores every second; all else is as
// shipped.
func startPrometheus(t *testing.T, cores []string) *prometheus {
	t.Helper()
	p := &prometheus{system.StartPrometheus(t, scrapeConfig(t, cores)), t}
	targets := len(operations("gateway")) + len(cores)
	asynctest.Succeeds(t, func() error {
		// Rates need two scrapes, rules that build on rules some evaluations.
		var seen []any
		if err := p.TryAsk("query", url.Values{"query": {`count_over_time(up{job=~"intents-gateway|intents-core"}[1h]) > 4`}}, &struct{ Result *[]any }{&seen}); err != nil {
			return err
		}
		if len(seen) != targets {
			return fmt.Errorf("%d of %d targets were scraped often enough", len(seen), targets)
		}
		return nil
	})
	return p
}

// scrapeConfig is the shipped one with the stack's addresses in place of names that only resolve where it is deployed.
func scrapeConfig(t *testing.T, cores []string) string {
	t.Helper()
	text := must(os.ReadFile(monitoring + "prometheus/prometheus.yml"))(t)
	rules := must(filepath.Abs(monitoring + "prometheus/rules"))(t)
	config := string(text)
	replace := func(old, by string) {
		if !strings.Contains(config, old) {
			t.Fatalf("prometheus.yml has no %q", old)
		}
		config = strings.ReplaceAll(config, old, by)
	}
	replace("_interval: 15s\n", "_interval: 1s\n")
	replace("rules/*.yml", rules+"/*.yml")
	for job, addresses := range map[string][]string{
		"{names: [gateway], type: A, port: 9080, refresh_interval: 15s}": operations("gateway"),
		"{names: [core], type: A, port: 9081, refresh_interval: 15s}":    cores,
	} {
		replace("dns_sd_configs:\n      - "+job, `static_configs: [{targets: ["`+strings.Join(addresses, `", "`)+`"]}]`)
	}
	replace(`    static_configs:
      - targets: ["localhost:9090"]`, `    static_configs: [{targets: []}]`)
	return config
}

// operations are the host:port of the operations listeners of the stack's gateways, or cores.
func operations(service string) (addresses []string) {
	for _, process := range shared.Stack.Env().Processes {
		if process.OpsURL != "" && strings.HasPrefix(process.Name, service) {
			addresses = append(addresses, strings.TrimPrefix(process.OpsURL, "http://"))
		}
	}
	return addresses
}

var (
	groupings = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right) ?\(([^)]*)\)`)
	// Words with their matchers; those before a parenthesis are functions.
	words    = regexp.MustCompile(`\b([a-zA-Z_][\w:]*)(?:\{([^}]*)\}| *(\())?`)
	matchers = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
)

// unknown are the metrics, labels and labels' values in a query that none of the scraped series has. That the query is valid is for
// Prometheus to say, which evaluates one that selects nothing without an error.
func (p *prometheus) unknown(query string) (selectors []string) {
	p.t.Helper()
	want := func(selector string) {
		var series []any
		if p.Ask("series", url.Values{"match[]": {selector}}, &series); len(series) == 0 {
			selectors = append(selectors, selector)
		}
	}
	for _, grouping := range groupings.FindAllStringSubmatch(query, -1) {
		for _, label := range regexp.MustCompile(`\w+`).FindAllString(grouping[1], -1) {
			if label != "slot" {
				want("{" + label + `!=""}`)
			}
		}
	}
	for _, word := range words.FindAllStringSubmatch(groupings.ReplaceAllString(query, " "), -1) {
		metric := word[1]
		if word[3] != "" || slices.Contains([]string{"and", "or", "unless", "bool", "ALERTS", "intents_base_backup_timestamp_seconds"}, metric) {
			continue // ALERTS comes with the first alert, and the mark of backups from node_exporter
		}
		if strings.HasPrefix(metric, "intents_core_postgres_slot_") {
			continue // they come with the first replication slot, as the label slot does
		}
		want(metric)
		for _, m := range matchers.FindAllStringSubmatch(word[2], -1) {
			values := []string{regexp.QuoteMeta(m[3])}
			if strings.HasSuffix(m[2], "~") {
				values = strings.Split(m[3], "|")
			}
			if m[1] == "status" || m[1] == "reason" && metric == "intents_core_rpc_errors_total" {
				values = []string{".+"} // each comes with the first answer or error that has it
			}
			for _, value := range values {
				want(fmt.Sprintf("%s{%s=~%q}", metric, m[1], value))
			}
		}
	}
	return selectors
}
