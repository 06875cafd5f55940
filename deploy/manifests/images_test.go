package manifests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The documented steps build, tag and push exactly the images of the chart. A stub of docker prints its arguments.
func TestChart_DocumentedImages(t *testing.T) {
	t.Parallel()
	page := read(t, "deploy/helm.md")
	steps := regexp.MustCompile("(?s)```sh\n(registry=.+?)```").FindStringSubmatch(page)
	values := regexp.MustCompile("(?s)cat >intents.yaml <<'EOF'[^\n]*\n(.+?)EOF\n").FindStringSubmatch(page)
	if steps == nil || values == nil {
		t.Fatal("the page has no steps, or no values")
	}
	var want []string
	for component, pod := range templates(objects(t, values[1])) {
		for _, c := range own(pod) {
			program := map[string]string{"migrate": "core", "test": "gateway"}[component]
			if program == "" {
				program = component
			}
			want = append(want, program+" "+c.Image)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\necho docker \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-euc", steps[1])
	shell.Dir, shell.Env = root, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string
	built := map[string]string{}
	build := regexp.MustCompile(`^docker build --file deploy/Dockerfile --target (\w+) .*--tag (\S+) \.$`)
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if step := build.FindStringSubmatch(line); step != nil {
			built[step[2]] = step[1]
		} else if image, ok := strings.CutPrefix(line, "docker push "); ok {
			got = append(got, built[image]+" "+image)
		} else {
			t.Errorf("what is %q?", line)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-the chart +the page):\n%s", diff)
	}
}
