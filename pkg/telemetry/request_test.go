package telemetry_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/telemetry"
)

// Lines logged in the context of a request bear its ids, those logged elsewhere do not.
func TestInRequest(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	log := telemetry.NewLogger(&text, "test").With("part", "a")
	ctx := telemetry.InRequest(t.Context(), slog.String("request_id", "r1"), slog.String("trace_id", "t1"))
	log.LogAttrs(ctx, slog.LevelInfo, "within", slog.Int("status", 200))
	log.LogAttrs(t.Context(), slog.LevelInfo, "without")
	log.WithGroup("group").LogAttrs(ctx, slog.LevelInfo, "grouped")
	var lines []map[string]any
	for line := range strings.Lines(text.String()) {
		var read map[string]any
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatal(err)
		}
		delete(read, "time")
		lines = append(lines, read)
	}
	ids := map[string]any{"request_id": "r1", "trace_id": "t1"}
	want := []map[string]any{
		{"level": "INFO", "service": "test", "part": "a", "msg": "within", "status": 200.0, "request_id": "r1", "trace_id": "t1"},
		{"level": "INFO", "service": "test", "part": "a", "msg": "without"},
		{"level": "INFO", "service": "test", "part": "a", "msg": "grouped", "group": ids},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
