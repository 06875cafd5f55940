package faults_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// judge fails a test. What clients were answered and how often is judged on any machine, with Errorf; a latency is judged
// with late, which spares a machine that was too busy for the control stream too.
type judge struct {
	testing.TB
	// busy says why latencies are not judged. It is empty where they are, and always with -strict.
	busy string
	// run is told of the latencies that are not judged.
	run *ledger
}

// newJudge takes the samples of the control stream.
func newJudge(tb testing.TB, control samples) judge {
	tb.Helper()
	j := judge{TB: tb, run: &outcomes}
	if slowest := control.quantile(1); slowest > stall() && !*strict {
		j.busy = fmt.Sprintf("not judged: this machine kept even /v2/health waiting for %s; -strict judges it", slowest)
	}
	return j
}

// stall is how long the control stream may wait before latencies are no longer judged.
func stall() time.Duration {
	if *strict {
		return 0
	}
	return 250 * time.Millisecond
}

// late fails the test for a latency, or says that it is not judged.
func (j judge) late(format string, args ...any) {
	j.Helper()
	if j.busy == "" {
		j.Errorf(format, args...)
		return
	}
	line := fmt.Sprintf(format+" (%s)", append(args, j.busy)...)
	j.Log(line)
	j.run.skip(j.Name() + ": " + line)
}

// recorder keeps what is reported, in place of a test.
type recorder struct {
	testing.TB
	errors, logs []string
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return "recorded" }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}
func (r *recorder) Log(args ...any) { r.logs = append(r.logs, fmt.Sprint(args...)) }

// machines are control streams of a machine at rest and of a busy one.
var machines = map[string]samples{
	"at rest": {{stream: control, status: 204, took: time.Millisecond}},
	"busy":    {{stream: control, status: 204, took: 10 * time.Second}},
}

// Every fault in what clients were answered is reported on a busy machine as on one at rest.
func TestJudge_Correctness(t *testing.T) {
	t.Parallel()
	began := time.Now()
	load := func(stream int, status int, count int) (all samples) {
		for n := range count {
			all = append(all, sample{stream: stream, key: "key", status: status, due: began.Add(time.Duration(n) * time.Millisecond), took: time.Millisecond})
		}
		return all
	}
	fine := slices.Concat(load(crowd, 200, 20), load(greedy, 200, burst), load(greedy, 429, 20))
	keysUnchecked := sample{stream: greedy, status: 503, due: began}
	answered := attempts{{kind: reads, status: 200, began: began}, {kind: writes, status: 201, began: began}}
	workload := &workload{asked: map[string]kind{"a": writes, "b": keyedWrites}, acknowledged: map[string]string{"a": "1", "b": "2"}}
	limited := func(j judge, all samples) {
		outcome{Gateways: 1, OverAdmission: all.of(greedy).overAdmission()}.mustLimit(j, all, 0)
	}
	for _, c := range []struct {
		name  string
		check func(judge)
		wrong bool
	}{
		{"all well", func(j judge) { fine.mustBeSound(j); fine.mustAnswerAll(j); limited(j, fine) }, false},
		{"503: keys cannot be checked", func(j judge) { append(slices.Clip(fine), keysUnchecked).mustAnswerAll(j) }, true},
		{"no answer", func(j judge) { append(slices.Clip(fine), load(greedy, 0, 1)...).mustAnswerAll(j) }, true},
		{"500", func(j judge) { append(slices.Clip(fine), load(greedy, 500, 1)...).mustAnswerAll(j) }, true},
		{"a key below its limit refused", func(j judge) { append(slices.Clip(fine), load(crowd, 429, 1)...).mustAnswerAll(j) }, true},
		{"no request at all", func(j judge) { samples{}.mustAnswerAll(j) }, true},
		{"an answer no client may see", func(j judge) { samples{{status: 503, fault: "503 without Retry-After"}}.mustBeSound(j) }, true},
		{"over-admission", func(j judge) { limited(j, append(slices.Clip(fine), load(greedy, 200, 2)...)) }, true},
		{"an answer to a client of the API that none may see", func(j judge) { attempts{{status: 500, fault: "500 is no {code, message}"}}.mustBeSound(j) }, true},
		{"rolling restart, all well", func(j judge) { answered.mustAllSucceed(j, 0, began) }, false},
		{"rolling restart, a failed request", func(j judge) {
			append(slices.Clip(answered), attempt{kind: writes, status: 503}).mustAllSucceed(j, 0, began)
		}, true},
		{"rolling restart, another status", func(j judge) {
			append(slices.Clip(answered), attempt{kind: reads, status: 429}).mustAllSucceed(j, 0, began)
		}, true},
		{"rolling restart, an intent nobody was told of", func(j judge) { answered.mustAllSucceed(j, 1, began) }, true},
		{"unavailable, 503 alone", func(j judge) { attempts{{status: 503}}.mustBeUnavailable(j, began) }, false},
		{"unavailable, another status", func(j judge) { attempts{{status: 503}, {status: 502}}.mustBeUnavailable(j, began) }, true},
		{"writes kept once", func(j judge) { workload.mustMatch(j, []stored{{"a", "1"}, {"b", "2"}}) }, false},
		{"a lost write", func(j judge) { workload.mustMatch(j, []stored{{"a", "1"}}) }, true},
		{"a doubled write", func(j judge) { workload.mustMatch(j, []stored{{"a", "1"}, {"b", "2"}, {"b", "3"}}) }, true},
		{"a write under another id", func(j judge) { workload.mustMatch(j, []stored{{"a", "1"}, {"b", "3"}}) }, true},
	} {
		for name, control := range machines {
			reported := &recorder{}
			c.check(newJudge(reported, control))
			if wrong := len(reported.errors) > 0; wrong != c.wrong || len(reported.logs) > 0 {
				t.Errorf("%s, a machine %s: errors %q, logs %q", c.name, name, reported.errors, reported.logs)
			}
		}
	}
}

// A latency is reported on a machine at rest; on a busy one it is said that it was not judged, unless -strict was given.
func TestJudge_Latency(t *testing.T) {
	t.Parallel()
	for name, control := range machines {
		reported, want := &recorder{}, recorder{errors: []string{"a request took 3s"}}
		if name == "busy" && !*strict {
			want = recorder{logs: []string{"a request took 3s (not judged: this machine kept even /v2/health waiting for 10s; -strict judges it)"}}
		}
		said := ""
		if len(want.logs) > 0 {
			said = "1 latencies were not judged on this busy machine:\nrecorded: " + want.logs[0] + "\n"
		}
		j := newJudge(reported, control)
		j.run = &ledger{}
		j.late("a request took %s", 3*time.Second)
		if diff := cmp.Diff(want.errors, reported.errors) + cmp.Diff(want.logs, reported.logs) + cmp.Diff(said, j.run.unjudged()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
