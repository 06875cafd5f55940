package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
)

func TestEnvFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(path, []byte("GATEWAY_URL=http://old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := newEnvFile(t.TempDir(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the file of an earlier run is still there")
	}
	env := stack.Env{GatewayURL: "http://new"}
	if err := file.write(env); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != env.String() {
		t.Errorf("got %q, %v", text, err)
	}
	if err := file.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the file is still there")
	}
}

func TestNewEnvFile_AnotherFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(path, []byte("export PRECIOUS=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := newEnvFile(t.TempDir(), path); err == nil {
		t.Error("the file was taken over")
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestEnvFile_Overwritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "env")
	file, err := newEnvFile(t.TempDir(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.write(stack.Env{GatewayURL: "http://ours"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("GATEWAY_URL=http://theirs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := file.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// A program that the shell starts has the variables, also one with a quote in its value.
func TestExports(t *testing.T) {
	t.Parallel()
	env := stack.Env{GatewayURL: "http://127.0.0.1:8080", AccountPassword: "it's a secret"}
	for line := range strings.Lines(exports(env.String())) {
		if !strings.HasPrefix(line, "export ") {
			t.Errorf("%q", line)
		}
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", `eval "$EXPORTS"; exec env`)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "EXPORTS=" + exports(env.String())}
	printed, err := command.Output()
	for _, want := range []string{"GATEWAY_URL=http://127.0.0.1:8080\n", "ACCOUNT_PASSWORD=it's a secret\n"} {
		if err != nil || !strings.Contains("\n"+string(printed), "\n"+want) {
			t.Errorf("no %q in %s (%v)", want, printed, err)
		}
	}
}
