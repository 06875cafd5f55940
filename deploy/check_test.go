// Package deploy_test tests the script check.
package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The step structure reports tracked symbolic links that are broken in another clone.
func TestCheckStructure_SymbolicLinks(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for name, c := range map[string]struct {
		target, ignored string
		refused         bool
	}{
		"tracked directory": {target: "../pkg"},
		"tracked file":      {target: "../pkg/go.mod"},
		"absolute":          {target: outside, refused: true},
		"dangling":          {target: "../pkg/missing", refused: true},
		"outside":           {target: "../../" + filepath.Base(outside), refused: true},
		"ignored":           {target: "../pkg/ignored", ignored: "pkg/ignored", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t)
			if c.ignored != "" {
				write(t, filepath.Join(dir, c.ignored), "")
				write(t, filepath.Join(dir, ".gitignore"), c.ignored+"\n")
			}
			if err := os.Symlink(c.target, filepath.Join(dir, "core", "link")); err != nil {
				t.Fatal(err)
			}
			if out, err := run(t, dir, "git", "add", "--all"); err != nil {
				t.Fatal(err, out)
			}
			out, err := run(t, dir, "deploy/check", "structure")
			want := ""
			if c.refused {
				want = "core/link -> " + c.target
			}
			if diff := cmp.Diff(want, lineWith(out, "link")); diff != "" || (err != nil) != c.refused {
				t.Errorf("%v, (-want +got):\n%s%s", err, diff, out)
			}
		})
	}
}

// The step vulnerabilities scans every module, also those outside the workspace.
func TestCheckVulnerabilities(t *testing.T) {
	t.Parallel()
	const all = " -C pkg ./...\n -C core ./...\n -C gateway ./...\n -C deploy ./...\n -C loadtest ./...\n" +
		"off -C deploy/chains ./...\noff -C deploy/generators ./...\noff -C deploy/manifests -test ./...\noff -C deploy/tools tool\n"
	for name, c := range map[string]struct{ govulncheck, scans, verdict string }{
		"none":        {"exit 0", all, "ok"},
		"a finding":   {"[[ $GOWORK != off ]] || exit 3", all, "FAILED"},
		"no database": {"echo 'fetching vulnerabilities: no such host'; exit 1", " -C pkg ./...\n", "not run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, cache := repository(t), t.TempDir()
			write(t, filepath.Join(dir, "deploy", "tools", "go.mod"), "module intents.internal/tools\n")
			write(t, filepath.Join(dir, "deploy", "tools", "go.sum"), "")
			version, err := run(t, dir, "bash", "-c", `echo -n "$(go env GOVERSION)-$(cat deploy/tools/go.{mod,sum} | cksum | tr ' ' '-')"`)
			if err != nil {
				t.Fatal(err, version)
			}
			write(t, filepath.Join(cache, "transfer-intents", "tools", version, "govulncheck"),
				"#!/usr/bin/env bash\necho \"${GOWORK:-} $*\" >>scans\n"+c.govulncheck+"\n")
			out, err := run(t, dir, "env", "XDG_CACHE_HOME="+cache, "GOWORK=", "deploy/check", "vulnerabilities")
			scans, _ := os.ReadFile(filepath.Join(dir, "scans"))
			if diff := cmp.Diff(c.scans, string(scans)); diff != "" || !strings.Contains(out, c.verdict) || (err != nil) != (c.verdict == "FAILED") {
				t.Errorf("%v, scans (-want +got):\n%s%s", err, diff, out)
			}
		})
	}
}

// repository is a small repository with the script, for which the step structure succeeds.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, module := range []string{"pkg", "core", "gateway", "deploy", "loadtest"} {
		write(t, filepath.Join(dir, module, "go.mod"), "module intents.internal/"+module+"\n")
	}
	script, err := os.ReadFile("check")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "deploy", "check"), string(script))
	if out, err := run(t, dir, "git", "init", "--quiet"); err != nil {
		t.Fatal(err, out)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run runs a program, which must exist.
func run(t *testing.T, dir, program string, args ...string) (string, error) {
	t.Helper()
	if strings.Contains(program, "/") {
		program = filepath.Join(dir, program)
	} else if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = dir
	// git sets these variables for the hooks of another repository, which may run the tests.
	command.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(dir, ".git"), "GIT_WORK_TREE="+dir, "GIT_INDEX_FILE="+filepath.Join(dir, ".git", "index"))
	out, err := command.CombinedOutput()
	return string(out), err
}

func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word+" ->") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
