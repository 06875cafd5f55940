package help_test

import (
	"os"
	"strings"
	"testing"

	"intents.internal/pkg/help"
)

func TestAsked(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][2]bool{
		"": {}, "serve": {}, "serve help": {}, "serve version": {}, "-v": {}, "--helpful": {},
		"help": {true, false}, "help serve": {true, false}, "-h": {true, false}, "serve -help": {true, false}, "a b --help": {true, false},
		"version": {false, true}, "-version": {false, true}, "--version": {false, true},
	} {
		fields := strings.Fields(args)
		if got := [2]bool{help.Asked(fields), help.VersionAsked(fields)}; got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}

func TestFlagSet_Output(t *testing.T) {
	t.Parallel()
	if help.FlagSet("a", []string{"-h"}).Output() != os.Stdout || help.FlagSet("a", []string{"-x"}).Output() != os.Stderr {
		t.Error("help is for standard output, and an error for standard error")
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if got := help.Version("core"); !strings.HasPrefix(got, "core ") || !strings.HasSuffix(got, ")\n") {
		t.Errorf("%q", got)
	}
}
