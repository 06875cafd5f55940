package stack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
)

// files writes files of JSON and returns their paths, relative to the working directory.
func files(t *testing.T, names ...string) []string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	paths := make([]string, len(names))
	for n, name := range names {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if paths[n], err = filepath.Rel(here, path); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// The lists are imported after the default ones, chains first, and each core gets the RPC file.
func TestStart_Lists(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	given := files(t, "chains.json", "tokens.json", "rpc.json")
	f.config.ChainsFile, f.config.TokensFile, f.config.RPCFile = given[0], given[1], given[2]
	f.config.Cores = 2
	f.start()
	log, at := f.log.String(), 0
	for _, job := range []string{"/deploy/data/chains.json]", "/deploy/data/tokens.json]", "did [chains import /", "did [tokens import /"} {
		next := strings.Index(log[at:], job)
		if next < 0 {
			t.Fatalf("%q is missing or too early:\n%s", job, log)
		}
		at += next + len(job)
	}
	for _, core := range []string{"core      | watches the chains of /", "core-2    | watches the chains of /"} {
		if !strings.Contains(log, core) {
			t.Errorf("no %q in:\n%s", core, log)
		}
	}
}

// Files are read before anything starts, and all faults are reported at once.
func TestStart_ListFaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	given := files(t, "tokens.json")
	if err := os.WriteFile(given[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.config.ChainsFile, f.config.TokensFile, f.config.RPCFile = "nonexistent.json", given[0], t.TempDir()
	_, err := stack.Start(t.Context(), f.config)
	for _, fault := range []string{"read the file of chains: open nonexistent.json", "tokens.json is not JSON", "read the file of RPC URLs: read /"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q is not reported: %v", fault, err)
		}
	}
	if log := f.log.String(); log != "" {
		t.Errorf("something was started:\n%s", log)
	}
}
