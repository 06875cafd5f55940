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
		root, err := findRoot()
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

// Build builds core and gateway of the checkout root (empty: found as for Config.Root) into dir. Tests that start several
// stacks build once and hand dir to Config.Binaries.
func Build(ctx context.Context, root, dir string, log func(line string)) error {
	if root == "" {
		var err error
		if root, err = findRoot(); err != nil {
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
	// The version control stamp is left out: git refuses a checkout of another user, and its binary may be missing.
	err := embedded.Run(ctx, embedded.Command{
		Name:   "go build",
		Path:   "go",
		Args:   []string{"build", "-buildvcs=false", "-o", dir + string(filepath.Separator), "./core", "./gateway"},
		Dir:    root,
		Output: log,
	})
	if err != nil {
		return fmt.Errorf("build the services: %w", err)
	}
	return nil
}

// findRoot is the directory of the checkout's go.work: around the working directory, or around this source file.
func findRoot() (string, error) {
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
