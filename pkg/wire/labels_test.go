package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/wire"
)

// labels is a JSON object of n labels of the largest size, in descending order.
func labels(n int) string {
	var pairs []string
	for ; n > 0; n-- {
		pairs = append(pairs, fmt.Sprintf(`"%s%02d":"%s"`, strings.Repeat("k", 38), n, strings.Repeat("ü", 200)))
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// Labels that are equal are the same text, however they are written.
func TestDecodeTransferRequest_Labels(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]wire.Labels{
		`{}`:                                    "",
		`{"b":"2","a":"1"}`:                     `{"a":"1","b":"2"}`,
		` { "\u0061" : "\u0031" , "b" : "2" } `: `{"a":"1","b":"2"}`,
		`{"A.b-c_9":"<\u003e&\u2028\/\"\\ 😀"}`: `{"A.b-c_9":"<>&` + "\u2028" + `/\"\\ 😀"}`,
	} {
		got, issues := wire.DecodeTransferRequest([]byte(strings.Replace(whole, `"inv-42"`, `"inv-42", "labels": `+given, 1)))
		if len(issues) > 0 || got.Labels != want {
			t.Errorf("%s is read as %q, %v; want %q", given, got.Labels, issues, want)
		}
	}
	got, issues := wire.DecodeTransferRequest([]byte(strings.Replace(whole, `"inv-42"`, `"inv-42", "labels": `+labels(wire.MaxLabels), 1)))
	if pairs := got.Labels.Pairs(); len(issues) > 0 || len(pairs) != wire.MaxLabels {
		t.Errorf("%d labels of the largest size: %v", len(pairs), issues)
	}
	if _, issues := wire.DecodeTransferBatch([]byte(`{"transfers":[` + strings.Replace(whole, `"inv-42"`, `"inv-42", "labels": {"a":1}`, 1) + `]}`)); len(issues) != 1 ||
		issues[0].Path != "/transfers/0/labels/a" {
		t.Errorf("of a batch: %v", issues)
	}
}

func TestLabels_Pairs(t *testing.T) {
	t.Parallel()
	for _, want := range []map[string]string{{}, {"a": `"\`}, {"a": "1", "b": "<2>", "B": "ü"}} {
		if diff := cmp.Diff(want, wire.NewLabels(want).Pairs()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
