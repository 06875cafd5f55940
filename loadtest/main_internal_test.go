package main

import (
	"strings"
	"testing"
)

// Help is no failure, whatever the scenario.
func TestRun_Help(t *testing.T) {
	t.Parallel()
	for name := range scenarios {
		for _, args := range [][]string{{name, "-h"}, {name, "--help"}, {"help", name}} {
			if err := run(t.Context(), args); err != nil {
				t.Errorf("loadtest %s: %v", args, err)
			}
		}
		if !strings.Contains(usage, "go run ./loadtest "+name+" ") {
			t.Errorf("the help does not have %s", name)
		}
	}
	for _, args := range [][]string{nil, {"-h"}, {"help"}, {"--version"}, {"version"}} {
		if err := run(t.Context(), args); err != nil {
			t.Errorf("loadtest %s: %v", args, err)
		}
	}
	if err := run(t.Context(), []string{"nothing"}); err == nil {
		t.Error("an unknown scenario is taken")
	}
}
