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

	"intents.internal/pkg/embedded"
)

// buildTimeout bounds the building of both services; on an empty build cache it takes a minute or two.
const buildTimeout = 15 * time.Minute

// build finds the checkout and builds its services into the data directory, where no other stack replaces them.
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
	s.log.say("building core and gateway")
	start := time.Now()
	if err := Build(ctx, s.config.Root, s.config.Binaries, s.log.writer("build")); err != nil {
		return err
	}
	s.log.say(fmt.Sprintf("built core and gateway in %.1f s", time.Since(start).Seconds()))
	return nil
}

// programs are what Build makes.
var programs = []string{"core", "gateway"}

// Build builds core and gateway of the checkout root (empty: found as for Config.Root) into dir. Tests that start several
// stacks build once and hand dir to Config.Binaries.
//
// They are linked in the cache directory, and dir gets further names of the same files: the go command links nothing again
// that it finds where it put it and that has not changed since. It never writes into a file that is there, so what another
// checkout or a later change builds leaves dir alone.
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
		return fmt.Errorf("make directory for the services: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, buildTimeout, fmt.Errorf("gave up after %s", buildTimeout))
	defer cancel()
	shared, lock, err := sharedPrograms(ctx)
	if err != nil { // then without it
		return compile(ctx, root, dir, log)
	}
	defer lock.Unlock()
	if err := compile(ctx, root, shared, log); err != nil {
		return err
	}
	for _, program := range programs {
		if err := place(filepath.Join(shared, program), filepath.Join(dir, program)); err != nil {
			return fmt.Errorf("put %s in place: %w", program, err)
		}
	}
	return nil
}

// sharedPrograms is the directory in which all of this user's checkouts build, one at a time.
func sharedPrograms(ctx context.Context) (dir string, lock *embedded.Lock, err error) {
	cache, err := embedded.CacheDir()
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(cache, "programs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	lock, err = embedded.AwaitLock(ctx, dir+".lock", func() {})
	return dir, lock, err
}

func compile(ctx context.Context, root, dir string, log func(line string)) error {
	// The version control stamp is left out: git refuses a checkout of another user, and its binary may be missing.
	args := []string{"build", "-buildvcs=false", "-o", dir + string(filepath.Separator)}
	for _, program := range programs {
		args = append(args, "./"+program)
	}
	if err := embedded.Run(ctx, embedded.Command{Name: "go build", Path: "go", Args: args, Dir: root, Output: log}); err != nil {
		return fmt.Errorf("build the services: %w", err)
	}
	return nil
}

// place gives a file another name, or copies it where the two directories are on different file systems.
func place(from, to string) error {
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

// FindRoot is the directory of the checkout's go.work: around the working directory, or around this source file.
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
	return "", errors.New("no checkout found around the working directory: run this inside it")
}

func isRoot(dir string) bool {
	for _, name := range []string{"go.work", "core/go.mod", "gateway/go.mod", "deploy/data/chains.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
