package e2e_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// query is what a PromQL expression asks of the metrics. That it is valid is for Prometheus to say; it does not say whether
// a name or a label is one that anybody exports.
type query struct {
	selectors []selector
	// grouped are the labels of by, without, on, ignoring, group_left and group_right.
	grouped []string
}

type selector struct {
	metric   string
	matchers []matcher
}

type matcher struct{ label, operator, value string }

var (
	tokens = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[0-9][0-9.a-z]*|=~|!~|!=|[-+*/%^=<>(){},@]`)
	name   = regexp.MustCompile(`^[a-zA-Z_:]`)

	grouping = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	words    = []string{
		"and", "or", "unless", "bool", "offset", "inf", "nan",
		"sum", "min", "max", "avg", "count", "topk", "bottomk", "quantile", "group", "stddev", "stdvar", "count_values",
	}
)

// parseQuery finds the names in an expression. Names before a parenthesis are functions.
func parseQuery(expression string) (q query, err error) {
	all := tokens.FindAllString(expression, -1)
	next := func(i int) string {
		if i+1 < len(all) {
			return all[i+1]
		}
		return ""
	}
	for i := 0; i < len(all); i++ {
		token := all[i]
		switch {
		case token == "{":
			return q, fmt.Errorf("a selector without a name in %s", expression)
		case !name.MatchString(token):
		case slices.Contains(grouping, token):
			if next(i) != "(" {
				break
			}
			for i += 2; i < len(all) && all[i] != ")"; i++ {
				if all[i] != "," {
					q.grouped = append(q.grouped, all[i])
				}
			}
		case slices.Contains(words, token), next(i) == "(":
		default:
			s := selector{metric: token}
			if next(i) == "{" {
				for i += 2; i+2 < len(all) && all[i] != "}"; i++ {
					if all[i] != "," {
						s.matchers = append(s.matchers, matcher{all[i], all[i+1], strings.Trim(all[i+2], `"`)})
						i += 2
					}
				}
			}
			q.selectors = append(q.selectors, s)
		}
	}
	return q, nil
}

// faults are the names, labels and values of an expression that nothing exports.
func (k known) faults(expression string) (faults []string) {
	q, err := parseQuery(expression)
	if err != nil {
		return []string{err.Error()}
	}
	labels := map[string]bool{}
	for _, s := range q.selectors {
		metric := k[s.metric]
		if metric == nil {
			faults = append(faults, "there is no metric "+s.metric)
			continue
		}
		for label := range metric {
			labels[label] = true
		}
		for _, m := range s.matchers {
			if fault := m.fault(metric[m.label]); fault != "" {
				faults = append(faults, s.metric+" "+fault)
			}
		}
	}
	for _, label := range q.grouped {
		if !labels[label] {
			faults = append(faults, "none of the metrics has a label "+label)
		}
	}
	return faults
}

// fault wants each alternative of a matcher to be a value that its label has. Statuses are there once they have been
// answered, and nobody wants to see all of them.
func (m matcher) fault(values map[string]bool) string {
	if values == nil {
		return "has no label " + m.label
	}
	if m.label == "status" && len(values) > 1 {
		return ""
	}
	alternatives := []string{regexp.QuoteMeta(m.value)}
	if strings.HasSuffix(m.operator, "~") {
		alternatives = strings.Split(m.value, "|")
	}
	for _, alternative := range alternatives {
		form, err := regexp.Compile("^(?:" + alternative + ")$")
		if err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(values)), form.MatchString) {
			return fmt.Sprintf("has no %s like %q", m.label, alternative)
		}
	}
	return ""
}

func TestParseQuery(t *testing.T) {
	t.Parallel()
	got, err := parseQuery(`topk(5, sum by (le, job) (rate(a_bucket{b="c", d=~"e|f{2}"}[5m] offset 1h)) / on () group_left () x:y:z1m)
		> bool 0.5e3 and absent(up{job="intents-gateway"}) or vector(1) unless g`)
	want := query{
		selectors: []selector{
			{"a_bucket", []matcher{{"b", "=", "c"}, {"d", "=~", "e|f{2}"}}}, {metric: "x:y:z1m"}, {"up", []matcher{{"job", "=", "gateway"}}}, {metric: "g"},
		},
		grouped: []string{"le", "job"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(query{}, selector{}, matcher{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := parseQuery(`sum({job="intents-core"})`); err == nil {
		t.Error("a selector without a name is not noticed")
	}
}
