package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/wire"
)

func TestDecodeTransferUpdate(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]wire.TransferUpdate{
		`{"reference":"inv-43"}`:                     {Reference: new("inv-43")},
		`{"reference":null}`:                         {Reference: new("")},
		`{"labels":{}}`:                              {Labels: map[string]string{}},
		`{"labels":null,"reference":null}`:           {Reference: new(""), RemoveLabels: true},
		`{"labels":{"a":"1","b":null,"\u0063":"3"}}`: {Labels: map[string]string{"a": "1", "b": "", "c": "3"}},
	} {
		got, issues := wire.DecodeTransferUpdate([]byte(body))
		if diff := cmp.Diff(want, got); diff != "" || issues != nil {
			t.Errorf("%s: issues %v; update (-want +got):\n%s", body, issues, diff)
		}
	}
}

func TestDecodeTransferUpdate_Issues(t *testing.T) {
	t.Parallel()
	type issues = []wire.Issue
	for body, want := range map[string]issues{
		``:                               {{"", "is not one valid JSON object: it ends too early"}},
		`null`:                           {{"", "must be an object"}},
		`{}`:                             {{"", "names nothing to change; give reference or labels"}},
		`{} {}`:                          {{"", "is not one valid JSON object: a second JSON value follows the first"}},
		`{"status":"filled"}`:            {{"/status", "is not a known field"}},
		`{"reference":""}`:               {{"/reference", "must have 1 to 128 characters"}},
		`{"reference":7}`:                {{"/reference", "must be a string"}},
		`{"reference":nul}`:              {{"/reference", "is not valid JSON at byte 16: invalid character '}' in literal null (expecting 'l')"}},
		`{"labels":["a"]}`:               {{"/labels", "must be an object"}},
		`{"labels":{"a":""}}`:            {{"/labels/a", wire.LabelValueRule}},
		`{"labels":{"a":nul}}`:           {{"/labels/a", "is not valid JSON at byte 18: invalid character '}' in literal null (expecting 'l')"}},
		`{"labels":{"a":{},"ä":null}}`:   {{"/labels/a", "must be a string"}, {"/labels/ä", wire.LabelKeyRule}},
		`{"labels":{"a":null,"a":null}}`: {{"/labels/a", "is given twice"}},
		`{"labels":` + labels(21) + `}`:  {{"/labels", "must not have more than 20 labels"}},
	} {
		_, got := wire.DecodeTransferUpdate([]byte(body))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: issues (-want +got):\n%s", body, diff)
		}
	}
}

func TestLabels_Update(t *testing.T) {
	t.Parallel()
	full, _ := wire.DecodeTransferUpdate([]byte(`{"labels":` + labels(20) + `}`))
	all, ok := wire.Labels("").Update(full)
	if !ok || len(all.Pairs()) != 20 {
		t.Fatalf("20 labels: %v, %q", ok, all)
	}
	if one, ok := all.Update(wire.TransferUpdate{Labels: map[string]string{"one": "more"}}); ok {
		t.Errorf("21 labels: %q", one)
	}
	for _, c := range []struct {
		labels, want wire.Labels
		update       wire.TransferUpdate
	}{
		{`{"a":"1"}`, `{"a":"1"}`, wire.TransferUpdate{Reference: new("")}},
		{`{"a":"1"}`, `{"a":"2","b":"1"}`, wire.TransferUpdate{Labels: map[string]string{"a": "2", "b": "1"}}},
		{`{"a":"1"}`, "", wire.TransferUpdate{Labels: map[string]string{"a": "", "b": ""}}},
		{`{"a":"1"}`, "", wire.TransferUpdate{RemoveLabels: true}},
	} {
		if got, ok := c.labels.Update(c.update); !ok || got != c.want {
			t.Errorf("%q after %+v: %q, %v", c.labels, c.update, got, ok)
		}
	}
}
