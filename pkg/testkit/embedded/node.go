package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// NodeModules installs the npm packages of a directory with a package-lock.json, once for all runs with the same lock, and returns the
// node_modules. The error wraps exec.ErrNotFound where Node.js or npm is not installed.
func NodeModules(project string) (modules string, err error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%s is not installed (Debian: apt-get install nodejs npm): %w", program, err)
		}
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	files := map[string][]byte{}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if files[name], err = os.ReadFile(filepath.Join(project, name)); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256(files["package-lock.json"])
	installed := filepath.Join(cache, "node", hex.EncodeToString(sum[:8]))
	modules = filepath.Join(installed, "node_modules")
	if _, err := os.Stat(installed); err == nil {
		return modules, nil
	}
	return modules, installNode(installed, files)
}

// installNode puts the packages in place whole or not at all. When another run was quicker, its packages are as good.
func installNode(installed string, files map[string][]byte) error {
	if err := os.MkdirAll(filepath.Dir(installed), 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(installed), "installing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(fresh, name), content, 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = fresh
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm cannot install the packages: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, installed); err != nil {
		if _, missing := os.Stat(installed); missing != nil {
			return err
		}
	}
	return nil
}
