package stack_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every core gets the same key of webhooks, which outlives restarts and resets.
func TestStack_KeepsWebhookKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.config.Cores = 2
	f.run()
	text, err := os.ReadFile(filepath.Join(f.config.Data, "webhook.key"))
	if err != nil {
		t.Fatal(err)
	}
	if key, err := hex.DecodeString(strings.TrimSpace(string(text))); err != nil || len(key) != 32 {
		t.Errorf("a key of %d bytes: %v", len(key), err)
	}
	info, err := os.Stat(filepath.Join(f.config.Data, "webhook.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	f.config.Reset = true
	f.run()
	for _, core := range []string{"core      | ", "core-2    | "} {
		line := core + "seals with " + strings.TrimSpace(string(text)) + "\n"
		if got := strings.Count(f.log.String(), line); got != 2 {
			t.Errorf("%d runs, not 2, say %q:\n%s", got, line, f.log.String())
		}
	}
}
