package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/embedded"
)

// Shipped is a file of the directory deploy with each of these texts, which it has once, replaced: addresses and limits of one machine.
func Shipped(t *testing.T, name string, replacements map[string]string) string {
	t.Helper()
	root, err := stack.FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile(filepath.Join(root, "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(shipped)
	for old, replacement := range replacements {
		if strings.Count(text, old) != 1 {
			t.Fatalf("deploy/%s has %q %d times", name, old, strings.Count(text, old))
		}
		text = strings.Replace(text, old, replacement, 1)
	}
	return text
}

// StartHAProxy runs one with a configuration until the test ends.
func StartHAProxy(t *testing.T, config string) {
	t.Helper()
	program := FindProgram(t, "on Debian: apt-get install haproxy", "haproxy")
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	StartProcess(t, embedded.Command{Path: program, Args: []string{"-db", "-f", file}})
}
