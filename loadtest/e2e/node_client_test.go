package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// clientSource is the package of the TypeScript client.
const clientSource = "../../pkg/client/typescript"

// installClient unpacks the packed TypeScript client among the project's packages, as npm installs it. What it depends on is in the lock
// file of js/ too.
func (p *nodeProject) installClient(t *testing.T) {
	t.Helper()
	packed := must(packedClient())(t)
	installed := filepath.Join(p.dir, "node_modules", "@transfer-intents", "client")
	if err := os.MkdirAll(installed, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", packed, "-C", installed, "--strip-components=1").CombinedOutput(); err != nil {
		t.Fatalf("unpack %s: %v\n%s", packed, err, out)
	}
}

// packedClient builds and packs the client once for all tests, beside the shared.Binaries, and returns the path of the package.
var packedClient = sync.OnceValues(func() (packed string, err error) {
	above := filepath.Join(filepath.Dir(shared.Binaries), "client")
	dir := filepath.Join(above, "package")
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join(clientSource, "src"))); err != nil {
		return "", err
	}
	modules, err := nodeModules()
	if err == nil {
		err = os.Symlink(modules, filepath.Join(above, "node_modules"))
	}
	if err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "tsconfig.json", "README.md", "LICENSE"} {
		text, err := os.ReadFile(filepath.Join(clientSource, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	pack := exec.CommandContext(ctx, "npm", "pack") // it compiles first
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
})
