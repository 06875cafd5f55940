package manifests_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

const dockerfile = "deploy/Dockerfile"

// noRegistry resolves every base image to an empty one: the checks read only the Dockerfile.
type noRegistry struct{}

func (noRegistry) ResolveImageConfig(_ context.Context, ref string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	config, err := json.Marshal(ocispecs.Image{Platform: ocispecs.Platform{OS: "linux", Architecture: runtime.GOARCH}})
	return ref, digest.FromBytes(config), config, err
}

// The checks of `docker build --check`, without an engine, report nothing.
func TestDockerfile_Lint(t *testing.T) {
	t.Parallel()
	text := []byte(read(t, dockerfile))
	source := llb.NewSourceMap(nil, dockerfile, "Dockerfile", text)
	source.Definition = &llb.Definition{}
	options := dockerfile2llb.ConvertOpt{MetaResolver: noRegistry{}, SourceMap: source}
	results, err := dockerfile2llb.DockerfileLint(t.Context(), text, options)
	if err != nil {
		t.Fatal(err)
	}
	if results.Error != nil {
		t.Errorf("%s does not build: %s", dockerfile, results.Error.Message)
	}
	for _, w := range results.Warnings {
		t.Errorf("%s:%d: %s: %s", dockerfile, w.Location.Ranges[0].Start.Line, w.RuleName, w.Detail)
	}
}

// image is the configuration of the image that a target of the Dockerfile makes.
func image(t *testing.T, target string) ocispecs.ImageConfig {
	t.Helper()
	options := dockerfile2llb.ConvertOpt{MetaResolver: noRegistry{}}
	options.Target = target
	result, err := dockerfile2llb.Dockerfile2LLB(t.Context(), []byte(read(t, dockerfile)), options)
	if err != nil {
		t.Fatal(err)
	}
	return result.Image.Config.ImageConfig
}

// Each image runs one program as an unprivileged user with a numeric id, which runAsNonRoot of Kubernetes requires.
func TestImages(t *testing.T) {
	t.Parallel()
	for name, ports := range map[string][]string{"core": {"8081", "9081"}, "gateway": {"8080", "9080"}} {
		made := image(t, name)
		if diff := cmp.Diff([]string{"65532:65532", "/" + name}, append([]string{made.User}, made.Entrypoint...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, port := range ports {
			if _, ok := made.ExposedPorts[port+"/tcp"]; !ok || !slices.ContainsFunc(made.Env, func(e string) bool { return strings.HasSuffix(e, "=:"+port) }) {
				t.Errorf("%s does not listen at %s: %v %v", name, port, made.ExposedPorts, made.Env)
			}
		}
	}
}

// imageSettings are the environment variables that an image sets.
func imageSettings(t *testing.T, target string) map[string]string {
	t.Helper()
	settings := map[string]string{}
	for _, line := range image(t, target).Env {
		if name, value, _ := strings.Cut(line, "="); name != "PATH" {
			settings[name] = value
		}
	}
	return settings
}

// scratch is a directory for all tests, which is removed after them.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "manifests-*"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// builds are two builds of the same sources in different directories.
var builds = sync.OnceValues(func() ([2]string, error) {
	places := [2]string{filepath.Join(scratch, "a"), filepath.Join(scratch, "another")}
	if err := copyContext(filepath.Join(places[0], "src")); err != nil {
		return places, fmt.Errorf("copy the build context: %w", err)
	}
	if err := os.CopyFS(filepath.Join(places[1], "src"), os.DirFS(filepath.Join(places[0], "src"))); err != nil {
		return places, err
	}
	for _, place := range places {
		if err := build(place); err != nil {
			return places, err
		}
	}
	return places, nil
})

// programs is the directory of the programs that the Dockerfile builds.
func programs(t *testing.T) string {
	t.Helper()
	places, err := builds()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(places[0], "out")
}

// build runs the build command of the Dockerfile in place/src.
func build(place string) error {
	command, err := buildCommand()
	if err != nil {
		return err
	}
	shell := exec.Command("sh", "-euc", strings.ReplaceAll(command, "-o /out/", "-o ../out/")) //nolint:noctx // go test bounds it
	shell.Dir = filepath.Join(place, "src")
	shell.Env = append(os.Environ(), "GOWORK=", "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH,
		"VERSION=version-of-the-test", "REVISION=revision-of-the-test")
	if out, err := shell.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return nil
}

func buildCommand() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, dockerfile))
	if err != nil {
		return "", err
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return "", err
	}
	for _, command := range stages[0].Commands {
		if run, ok := command.(*instructions.RunCommand); ok {
			return strings.Join(run.CmdLine, " "), nil
		}
	}
	return "", errors.New("the first stage runs nothing")
}

// copyContext copies exactly the files of the build context.
func copyContext(to string) error {
	file, err := os.Open(filepath.Join(root, dockerfile+".dockerignore"))
	if err != nil {
		return err
	}
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		return err
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || entry.IsDir() {
			if name == ".git" {
				return fs.SkipDir
			}
			return err
		}
		if skip, err := ignored.MatchesOrParentMatches(name); err != nil || skip || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}

// The build command succeeds in the build context, and its output is reproducible.
func TestBuild(t *testing.T) {
	t.Parallel()
	places, err := builds()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"core", "gateway"} {
		var sums [2][32]byte
		for i, place := range places {
			program, err := os.ReadFile(filepath.Join(place, "out", name))
			if err != nil {
				t.Fatal(err)
			}
			sums[i] = sha256.Sum256(program)
			if bytes.Contains(program, []byte(place)) {
				t.Errorf("%s names the place where it was built", name)
			}
			for _, word := range []string{"version-of-the-test", "revision-of-the-test"} {
				if !bytes.Contains(program, []byte(word)) {
					t.Errorf("%s does not know its %s", name, word)
				}
			}
		}
		if sums[0] != sums[1] {
			t.Errorf("two builds of %s differ", name)
		}
	}
}

// The build context has the sources of the images, and no other files of a checkout.
func TestBuildContext(t *testing.T) {
	t.Parallel()
	if _, err := builds(); err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(filepath.Dir(programs(t)), "src")
	for _, name := range []string{"deploy/data/chains.json", "deploy/data/settlements-lifi-mainnets.json", "deploy/data/settlements-lifi-testnets.json", "deploy/data/tokens.json", "deploy/data/NOTICE", "go.work", "core/main.go"} {
		if _, err := os.Stat(filepath.Join(src, name)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{".env", ".env.example", "README.md", "loadtest/main.go", "deploy/check", "core/command/main_test.go"} {
		if _, err := os.Stat(filepath.Join(src, name)); err == nil {
			t.Errorf("%s is in the build context", name)
		}
	}
}
