package wire_test

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/caip"
	"intents.internal/pkg/wire"
)

// maxBatchIssues is how many issues of a batch are told.
const maxBatchIssues = 20

func batchOf(items ...string) string { return `{"transfers":[` + strings.Join(items, ",") + `]}` }

func TestDecodeTransferBatch(t *testing.T) {
	t.Parallel()
	first, _ := wire.DecodeTransferRequest([]byte(whole))
	second, _ := wire.DecodeTransferRequest([]byte(minimal))
	for body, want := range map[string][]wire.TransferRequest{
		batchOf(whole):                       {first},
		batchOf(minimal, whole, minimal):     {second, first, second},
		" " + batchOf(whole, whole) + "\n":   {first, first},
		`{"\u0074ransfers":[` + whole + `]}`: {first},
	} {
		got, issues := wire.DecodeTransferBatch([]byte(body))
		if diff := cmp.Diff(want, got); diff != "" || issues != nil {
			t.Errorf("%s: issues %v; items (-want +got):\n%s", body, issues, diff)
		}
	}
	if items, issues := wire.DecodeTransferBatch([]byte(batchOf(slices.Repeat([]string{minimal}, 101)...))); len(items) != 101 || issues != nil {
		t.Errorf("101 items: %d, issues %v", len(items), issues)
	}
}

// Each body is wrong in the ways that its issues say, in the order of the items, and a syntax error or a name given twice stands alone.
func TestDecodeTransferBatch_Issues(t *testing.T) {
	t.Parallel()
	type issues = []wire.Issue
	const leftOut = "must be left out: an intent of a quote is made alone, with POST /v2/transfers"
	required := func(n int) issues {
		return issues{{fmt.Sprintf("/transfers/%d/source", n), "is required"}, {fmt.Sprintf("/transfers/%d/destination", n), "is required"}}
	}
	var twenty issues
	for n := range 10 {
		twenty = append(twenty, required(n)...)
	}
	for name, c := range map[string]struct {
		body string
		want issues
	}{
		"empty":           {``, issues{{"", "is not one valid JSON object: it ends too early"}}},
		"array":           {`[` + whole + `]`, issues{{"", "must be an object"}}},
		"one intent":      {minimal, issues{{"/source", "is not a known field"}, {"/destination", "is not a known field"}, {"/transfers", "is required"}}},
		"nothing in it":   {`{}`, issues{{"/transfers", "is required"}}},
		"no items":        {batchOf(), issues{{"/transfers", "must have 1 to 100 items"}}},
		"null":            {`{"transfers":null}`, issues{{"/transfers", "must be an array"}}},
		"object":          {`{"transfers":{"0":` + minimal + `}}`, issues{{"/transfers", "must be an array"}}},
		"no objects":      {batchOf(`1`, minimal, `[]`), issues{{"/transfers/0", "must be an object"}, {"/transfers/2", "must be an object"}}},
		"unknown at top":  {`{"transfers":[` + minimal + `],"atomic":false}`, issues{{"/atomic", "is not a known field"}}},
		"list twice":      {`{"transfers":[` + minimal + `],"transfers":[]}`, issues{{"/transfers", "is given twice"}}},
		"second value":    {batchOf(minimal) + `{}`, issues{{"", "is not one valid JSON object: a second JSON value follows the first"}}},
		"of two items":    {batchOf(`{}`, minimal, `{}`), append(required(0), required(2)...)},
		"name twice":      {batchOf(`{}`, `{"source":{"amount":"1","amount":"2"}}`), issues{{"/transfers/1/source/amount", "is given twice"}}},
		"syntax error":    {batchOf(`{}`, `{"source":x}`), issues{{"/transfers/1/source", "is not valid JSON at byte 27: invalid character 'x' at start of value"}}},
		"quote":           {batchOf(`{"quoteId":"` + quoteID + `"}`), issues{{"/transfers/0/quoteId", leftOut}}},
		"quote and sides": {batchOf(minimal, `{"quoteId":null,`+minimal[1:]), issues{{"/transfers/1/quoteId", leftOut}}},
		"the first 20":    {batchOf(slices.Repeat([]string{`{}`}, 30)...), twenty},
		"syntax error after 20": {
			batchOf(slices.Repeat([]string{`{}`}, 30)...) + "x", issues{{"", "is not valid JSON at byte 105: invalid character 'x' at start of value"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, got := wire.DecodeTransferBatch([]byte(c.body)); cmp.Diff(c.want, got) != "" {
				t.Errorf("issues (-want +got):\n%s", cmp.Diff(c.want, got))
			}
		})
	}
}

// A chain has the path of the first member that names it.
func TestTransferRequest_PathOf(t *testing.T) {
	t.Parallel()
	across, _ := wire.DecodeTransferRequest([]byte(whole))
	mixed, _ := wire.DecodeTransferRequest([]byte(`{"source":{"account":"` + bob + `","token":"` + usdc + `","amount":"1"},"destination":{"account":"` + bob + `"}}`))
	got := []string{
		across.PathOf(caip.EIP155Chain(11155111)), across.PathOf(caip.EIP155Chain(84532)), across.PathOf(caip.EIP155Chain(1)),
		mixed.PathOf(caip.EIP155Chain(84532)), mixed.PathOf(caip.EIP155Chain(11155111)),
	}
	want := []string{"/source/account", "/destination/account", "", "/source/account", "/source/token"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

// Each item of a batch is read as it is alone, with the same issues below its place, except that it must not have a quote.
func FuzzDecodeTransferBatch(f *testing.F) {
	for n, body := range seeds {
		f.Add([]byte(batchOf(body)))
		f.Add([]byte(batchOf(body, seeds[(n+1)%len(seeds)], `{}`)))
	}
	for _, body := range []string{``, `{}`, `{"transfers":[]}`, `{"transfers":{}}`, `{"transfers":[1]}`, `{"transfers":[],"a":1}`, batchOf(slices.Repeat([]string{`{}`}, 12)...)} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		items, issues := wire.DecodeTransferBatch(body)
		if len(issues) > maxBatchIssues {
			t.Fatalf("%q: %d issues", body, len(issues))
		}
		var plain map[string]json.RawMessage
		var texts []json.RawMessage
		switch {
		case !jsontext.Value(body).IsValid():
			if len(issues) != 1 {
				t.Fatalf("%q is not valid JSON: %v", body, issues)
			}
			return
		case json.Unmarshal(body, &plain) != nil, len(plain) != 1, json.Unmarshal(plain["transfers"], &texts) != nil, len(texts) == 0:
			if len(issues) == 0 {
				t.Fatalf("took %q", body)
			}
			return
		}
		var want []wire.Issue
		quotes, expected := map[string]bool{}, make([]wire.TransferRequest, len(texts))
		for n, text := range texts {
			var alone []wire.Issue
			expected[n], alone = wire.DecodeTransferRequest(text)
			for _, issue := range alone {
				if issue.Path != "/quoteId" {
					want = append(want, wire.Issue{Path: wire.BatchPath(n, issue.Path), Message: issue.Message})
				}
			}
			var members map[string]json.RawMessage
			if json.Unmarshal(text, &members) == nil && members["quoteId"] != nil {
				quotes[wire.BatchPath(n, "/quoteId")] = true
			}
		}
		told := len(issues)
		got := slices.DeleteFunc(slices.Clone(issues), func(issue wire.Issue) bool {
			known := quotes[issue.Path]
			delete(quotes, issue.Path)
			return known
		})
		if told == maxBatchIssues { // there may be more
			want = want[:min(len(want), len(got))]
		} else if len(quotes) > 0 {
			t.Fatalf("%q: took %v", body, quotes)
		}
		if !slices.Equal(want, got) {
			t.Fatalf("%q (-want +got):\n%s", body, cmp.Diff(want, got))
		}
		if told == 0 && !slices.Equal(expected, items) {
			t.Fatalf("%q (-want +got):\n%s", body, cmp.Diff(expected, items))
		}
	})
}

// longBatches are bodies of the most bytes that a batch may have, of what is short and wrong, long and wrong, and deep.
func longBatches() map[string]string {
	fill := func(begin, piece, end string) string {
		return begin + strings.Repeat(piece, (wire.MaxTransferBatchBytes-len(begin)-len(end))/len(piece)) + end
	}
	var names strings.Builder
	for n := range 5000 {
		fmt.Fprintf(&names, `"n%d":1,`, n)
	}
	return map[string]string{
		"empty objects":   fill(`{"transfers":[`, `{},`, `{}]}`),
		"numbers":         fill(`{"transfers":[`, `1,`, `1]}`),
		"unclosed":        fill(`{"transfers":[`, `{},`, ``),
		"deep":            fill(`{"transfers":[`, `[`, ``),
		"unknown fields":  `{"transfers":[{` + names.String() + `"a":1}]}`,
		"one long name":   fill(`{"transfers":[{"`, `a`, `":1}]}`),
		"whole intents":   fill(`{"transfers":[`, minimal+`,`, minimal+`]}`),
		"half and half":   fill(`{"transfers":[`, minimal+`,{},`, minimal+`]}`),
		"escaped letters": fill(`{"transfers":[{"reference":"`, `\u0041`, `"}]}`),
	}
}

// The longest bodies, whatever they are made of, have bounded issues and are read in bounded memory and time. Those with an issue leave no
// more items than precede it.
func TestDecodeTransferBatch_Long(t *testing.T) {
	t.Parallel()
	for name, body := range longBatches() {
		var items []wire.TransferRequest
		var issues []wire.Issue
		took, memory := least(func() { items, issues = wire.DecodeTransferBatch([]byte(body)) })
		paths := 0
		for _, issue := range issues {
			paths += len(issue.Path)
		}
		t.Logf("%s, %d bytes: %d items and %d issues in %s and %d bytes", name, len(body), len(items), len(issues), took, memory)
		most := wire.MaxTransferBatchBytes / len(minimal)
		if len(items) > most || len(issues) > maxBatchIssues || paths > 2*wire.MaxTransferBatchBytes || took > time.Second || memory > 16*wire.MaxTransferBatchBytes {
			t.Errorf("%s: %d items, %d issues with paths of %d bytes in %s and %d bytes", name, len(items), len(issues), paths, took, memory)
		}
		if len(items) > 1 && len(issues) > 0 {
			t.Errorf("%s: %d items are kept for %v", name, len(items), issues[0])
		}
	}
}

// least is the least time and memory that one of some calls has taken: other tests run meanwhile and add theirs.
func least(call func()) (took time.Duration, memory uint64) {
	took, memory = math.MaxInt64, math.MaxUint64
	for range 20 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		call()
		took = min(took, time.Since(began))
		runtime.ReadMemStats(&after)
		memory = min(memory, after.TotalAlloc-before.TotalAlloc)
	}
	return took, memory
}

func BenchmarkDecodeTransferBatch(b *testing.B) {
	bodies := longBatches()
	bodies["100 intents"] = batchOf(slices.Repeat([]string{whole}, wire.MaxTransferBatch)...)
	for name, body := range bodies {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				wire.DecodeTransferBatch([]byte(body))
			}
		})
	}
}
