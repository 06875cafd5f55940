package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"intents.internal/deploy/stack"
)

// envName is the environment file that a running stack keeps in its data directory.
const envName = "env"

// errNotRunning says that no stack runs with the data directory.
var errNotRunning = errors.New("no stack is running with this data directory: start one with `go run ./deploy/local`, or name its directory with --data DIR")

// envFile is the environment file of the running stack in its data directory, and the one of --env-file. Both exist while the stack
// runs. It is safe for concurrent use.
type envFile struct {
	mu      sync.Mutex
	paths   []string
	written []byte
}

// newEnvFile removes the file of --env-file of an earlier run, so that a program that waits for it does not read an old one. It
// returns an error for any other file. The one in the data directory may be that of a stack that still runs there; it stays.
func newEnvFile(data, path string) (*envFile, error) {
	f := &envFile{paths: []string{filepath.Join(data, envName)}}
	if path == "" {
		return f, nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolve --env-file: %w", err)
	}
	f.paths = append(f.paths, path)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read --env-file: %w", err)
	}
	if len(text) > 0 && !bytes.HasPrefix(text, []byte("GATEWAY_URL=")) {
		return nil, fmt.Errorf("--env-file %s exists and is not an environment file of a stack: choose another path", path)
	}
	if err := os.Remove(path); err != nil {
		return nil, fmt.Errorf("remove the old --env-file: %w", err)
	}
	return f, nil
}

// write replaces the files atomically. Only this user can read them.
func (f *envFile) write(env stack.Env) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = []byte(env.String())
	for _, path := range f.paths {
		draft := path + ".new"
		if err := os.WriteFile(draft, f.written, 0o600); err != nil {
			return fmt.Errorf("write the environment file: %w", err)
		}
		if err := os.Rename(draft, path); err != nil {
			return fmt.Errorf("rename the environment file: %w", err)
		}
	}
	return nil
}

// remove removes the files, unless another program has changed them.
func (f *envFile) remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.written == nil {
		return nil
	}
	for _, path := range f.paths {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(text, f.written) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove the environment file: %w", err)
		}
	}
	f.written = nil
	return nil
}

// readEnv reads the environment file of the stack that runs with the data directory.
func readEnv(data string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(data, envName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", data, errNotRunning)
	}
	if err != nil {
		return nil, fmt.Errorf("read the addresses of the running stack: %w", err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if unquoted, found := strings.CutPrefix(value, "'"); found {
			value = strings.ReplaceAll(strings.TrimSuffix(unquoted, "'"), `'\''`, "'")
		}
		env[name] = value
	}
	return env, nil
}
