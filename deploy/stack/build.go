package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"intents.internal/pkg/testkit/embedded"
)

// buildTimeout bounds the build of both services, which takes a minute or two with an empty build cache.
const buildTimeout = 15 * time.Minute

// build builds the services of the checkout into the data directory, where no other stack replaces them.
func (s *Stack) build(ctx context.Context) error {
	if s.config.Root == "" {
		root, err := FindRoot()
		if err != nil {
			return err
		}
		s.config.Root = root
	}
	if s.config.Binaries != "" {
		return nil
	}
	s.config.Binaries = s.path("bin")
	s.log.print("building core and gateway")
	start := time.Now()
	if err := Build(ctx, s.config.Root, s.config.Binaries, s.log.writer("build")); err != nil {
		return err
	}
	s.log.print(fmt.Sprintf("built core and gateway in %.1f s", time.Since(start).Seconds()))
	return nil
}

// buildChains builds the local chains in the background, until ctx ends. The channel receives the result.
func (s *Stack) buildChains(ctx context.Context) <-chan error {
	built := make(chan error, 1)
	if s.chains == nil || s.config.Binaries != s.path("bin") {
		built <- nil
		return built
	}
	s.supervision.Go(func() {
		start := time.Now()
		s.log.print("building the local chains in the background, which takes a minute or two the first time")
		err := chainsProgram.build(ctx, s.config.Root, s.config.Binaries, s.log.writer("build"))
		if err == nil {
			s.log.print(fmt.Sprintf("built the local chains in %.1f s", time.Since(start).Seconds()))
		}
		built <- err
	})
	return built
}

// target is what one run of go build builds.
type target struct {
	name     string   // in messages
	dir      string   // of the shared build, below the cache directory
	module   string   // where go build runs, below the root
	packages []string // with one program each, below module
	programs []string // their names
	env      []string
}

var (
	services = target{
		name: "services", dir: "programs", packages: []string{"./core", "./gateway"}, programs: []string{"core", "gateway"},
	}
	// chainsProgram is a module of its own, so that its dependencies are not those of the services.
	chainsProgram = target{
		name: "local chains", dir: "programs-chains", module: "deploy/chains", packages: []string{"."}, programs: []string{"chains"},
		env: []string{"GOWORK=off", "CGO_ENABLED=0"},
	}
)

// Build builds core and gateway of the checkout root (empty: as for Config.Root) into dir. Tests that start several stacks
// build once and set Config.Binaries to dir.
//
// The programs are built in the cache directory and hard-linked into dir, because go build does not link an unchanged program
// again. It replaces files instead of writing to them, so a later build does not change the files in dir.
func Build(ctx context.Context, root, dir string, log func(line string)) error {
	if root == "" {
		var err error
		if root, err = FindRoot(); err != nil {
			return err
		}
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("the go command is not on PATH: install Go from https://go.dev/dl/ or add its bin directory to PATH")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create directory for the services: %w", err)
	}
	return services.build(ctx, root, dir, log)
}

// build builds the target of the checkout root into dir.
func (t target) build(ctx context.Context, root, dir string, log func(line string)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, buildTimeout, fmt.Errorf("gave up after %s", buildTimeout))
	defer cancel()
	shared, lock, err := lockSharedBuild(ctx, t.dir, func() { log("waiting for another build of the " + t.name) })
	if err != nil { // build without the shared directory
		return t.compile(ctx, root, dir, log)
	}
	defer lock.Unlock()
	if err := t.compile(ctx, root, shared, log); err != nil {
		return err
	}
	for _, program := range t.programs {
		if err := linkOrCopy(filepath.Join(shared, program), filepath.Join(dir, program)); err != nil {
			return fmt.Errorf("link %s: %w", program, err)
		}
	}
	return nil
}

// lockSharedBuild locks and returns the named directory, in which all checkouts of this user build, one at a time. It calls
// waiting once if it has to wait.
func lockSharedBuild(ctx context.Context, name string, waiting func()) (dir string, lock *embedded.Lock, err error) {
	cache, err := embedded.CacheDir()
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(cache, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	lock, err = embedded.AwaitLock(ctx, dir+".lock", waiting)
	return dir, lock, err
}

func (t target) compile(ctx context.Context, root, dir string, log func(line string)) error {
	progress := buildProgress{name: t.name, log: log}
	// -buildvcs=false because git refuses a checkout of another user, and may not be installed. -v names each package.
	args := append([]string{"build", "-v", "-buildvcs=false", "-o", dir + string(filepath.Separator)}, t.packages...)
	err := embedded.Run(ctx, embedded.Command{
		Name: "go build", Path: "go", Args: args, Env: append(os.Environ(), t.env...), Dir: filepath.Join(root, t.module), Output: progress.line,
	})
	if err != nil {
		return fmt.Errorf("build the %s: %w", t.name, err)
	}
	return nil
}

// linkOrCopy creates a hard link, or a copy if the directories are on different file systems.
func linkOrCopy(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, program, 0o755)
}

// FindRoot is the directory of the checkout: above the working directory, or above this source file.
func FindRoot() (string, error) {
	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	_, source, _, _ := runtime.Caller(0)
	for _, start := range []string{working, filepath.Dir(source)} {
		for dir := start; ; dir = filepath.Dir(dir) {
			if isRoot(dir) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", errors.New("no checkout found above the working directory: run this inside one")
}

func isRoot(dir string) bool {
	for _, name := range []string{"go.work", "core/go.mod", "gateway/go.mod", "deploy/data/chains.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
