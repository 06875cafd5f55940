package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"intents.internal/pkg/testkit/embedded"
)

// nodeProject is a directory of the test's own with the scripts of js/ and the packages of the lock file, which are in the directory above it.
type nodeProject struct {
	dir string
	env []string
}

func newNodeProject(t *testing.T) *nodeProject {
	t.Helper()
	modules, err := findNode()
	if err != nil {
		without(t, err.Error())
	}
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

// findNode returns the directory of the installed packages, or an error that says what is missing.
func findNode() (modules string, err error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%s is not installed (Debian: apt-get install nodejs npm)", program)
		}
	}
	return nodeModules()
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

// nodeModules installs what js/package-lock.json names, once for all runs with the same lock, and returns where.
var nodeModules = sync.OnceValues(func() (string, error) {
	cache, err := embedded.CacheDir()
	if err != nil {
		return "", err
	}
	lock, err := os.ReadFile("js/package-lock.json")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	installed := filepath.Join(cache, "node", hex.EncodeToString(sum[:8]))
	if !exists(installed) {
		err = install(installed)
	}
	return filepath.Join(installed, "node_modules"), err
})

// install puts the packages in place whole or not at all. When another run was quicker, its packages are as good.
func install(installed string) error {
	if err := os.MkdirAll(filepath.Dir(installed), 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(installed), "installing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := os.CopyFS(fresh, os.DirFS("js")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = fresh
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm cannot install the packages: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, installed); err != nil && !exists(installed) {
		return err
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
