package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// clientSource is the package of the TypeScript client.
const clientSource = "../../pkg/client/typescript"

// installClient packs the TypeScript client and unpacks it among the project's packages, as npm installs it. What it depends on is in the lock
// file of js/ too.
func (p *nodeProject) installClient(t *testing.T) {
	t.Helper()
	installed := filepath.Join(p.dir, "node_modules", "@transfer-intents", "client")
	if err := os.MkdirAll(installed, 0o700); err != nil {
		t.Fatal(err)
	}
	packed, err := packClient(t, filepath.Join(p.dir, "..", "client"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", packed, "-C", installed, "--strip-components=1").CombinedOutput(); err != nil {
		t.Fatalf("unpack %s: %v\n%s", packed, err, out)
	}
}

// packClient builds the client in a directory beside the installed packages, and returns the path of the packed package.
func packClient(t *testing.T, dir string) (packed string, err error) {
	t.Helper()
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join(clientSource, "src"))); err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "tsconfig.json", "README.md"} {
		text, err := os.ReadFile(filepath.Join(clientSource, name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	pack := exec.CommandContext(t.Context(), "npm", "pack") // it compiles first
	pack.Dir = dir
	if out, err := pack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm pack: %w\n%s", err, out)
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err == nil && len(archives) != 1 {
		err = fmt.Errorf("npm pack made %v, not one package", archives)
	}
	if err != nil {
		return "", err
	}
	return archives[0], nil
}
