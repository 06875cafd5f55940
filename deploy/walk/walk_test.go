package walk_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/deploy/walk"
)

// The pages have a text before each block, and seven requests whose bodies are JSON.
func TestRead(t *testing.T) {
	t.Parallel()
	steps, err := walk.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, step := range steps {
		if len(step.Commands) == 0 {
			t.Errorf("the step %q has no commands", step.Text)
		}
		for _, command := range step.Commands {
			request, err := walk.RequestOf(command, time.Date(2026, 11, 29, 11, 58, 30, 0, time.UTC))
			if errors.Is(err, walk.ErrNoRequest) {
				continue
			}
			var body struct{ Deadline string }
			if err := json.Unmarshal([]byte(request.Body), &body); err != nil {
				t.Errorf("%v: %s", err, command)
			}
			paths = append(paths, request.Path+" "+request.IdempotencyKey+" "+body.Deadline)
		}
	}
	want := []string{
		"/v2/transfers  ", "/v2/quotes  ", "/v2/transfers  ", "/v2/transfers  ", "/v2/transfers  2026-11-29T12:00:00Z",
		"/v2/transfers/batch payroll-1 ", "/v2/transfers  ",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if len(steps) != 5 || steps[1].Text == "" || steps[4].Text == "" {
		t.Errorf("the pages have the steps %q", steps)
	}
}
