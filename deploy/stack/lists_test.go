package stack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
)

// Files are read before anything starts, and all faults are reported at once.
func TestStart_ListFaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(tokens, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.config.ChainsFile, f.config.TokensFile, f.config.RPCFile = "nonexistent.json", tokens, t.TempDir()
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
