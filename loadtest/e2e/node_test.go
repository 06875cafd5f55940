package e2e_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/embedded"
)

// nodeProject is a directory of the test's own with the scripts of js/ and the packages of the lock file, which are in the directory above it.
type nodeProject struct {
	dir string
	env []string
}

func newNodeProject(t *testing.T) *nodeProject {
	t.Helper()
	modules, err := nodeModules()
	if err != nil {
		system.Skip(t, err.Error())
	}
	return newNodeProjectWith(t, modules)
}

// newNodeProjectWith is newNodeProject with other packages than those of js/.
func newNodeProjectWith(t *testing.T, modules string) *nodeProject {
	t.Helper()
	above := t.TempDir()
	dir := filepath.Join(above, "project")
	if err := os.CopyFS(dir, os.DirFS("js")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(above, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return &nodeProject{dir: dir, env: os.Environ()}
}

func (p *nodeProject) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	said, err := p.command(t, nil, program, args...)
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, said)
	}
	return said
}

func (p *nodeProject) command(t *testing.T, input []byte, program string, args ...string) (said string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	path := filepath.Join(p.dir, "..", "node_modules", ".bin", program)
	if program == "node" {
		path = program
	}
	command := exec.CommandContext(ctx, path, args...)
	command.Dir, command.Env, command.Stdin = p.dir, p.env, bytes.NewReader(input)
	out, err := command.CombinedOutput()
	return string(out), err
}

// nodeModules are the packages that js/package-lock.json names, or an error that says what is missing.
var nodeModules = sync.OnceValues(func() (string, error) { return embedded.NodeModules("js") })
