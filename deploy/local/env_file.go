package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"intents.internal/deploy/stack"
)

// envFile is the environment file of the running stack, which exists while the stack runs. An empty path is no file. It is
// safe for concurrent use.
type envFile struct {
	mu      sync.Mutex
	path    string
	written []byte
}

// newEnvFile removes the file of an earlier run, so that a program that waits for the file does not read an old one. It returns
// an error for any other file.
func newEnvFile(path string) (*envFile, error) {
	f := &envFile{path: path}
	if path == "" {
		return f, nil
	}
	var err error
	if f.path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("resolve --env-file: %w", err)
	}
	text, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read --env-file: %w", err)
	}
	if len(text) > 0 && !bytes.HasPrefix(text, []byte("GATEWAY_URL=")) {
		return nil, fmt.Errorf("--env-file %s exists and is not an environment file of a stack: choose another path", f.path)
	}
	if err := os.Remove(f.path); err != nil {
		return nil, fmt.Errorf("remove the old --env-file: %w", err)
	}
	return f, nil
}

// write replaces the file atomically. Only this user can read it.
func (f *envFile) write(env stack.Env) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" {
		return nil
	}
	text := []byte(env.String())
	draft := f.path + ".new"
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return fmt.Errorf("write --env-file: %w", err)
	}
	if err := os.Rename(draft, f.path); err != nil {
		return fmt.Errorf("rename --env-file: %w", err)
	}
	f.written = text
	return nil
}

// remove removes the file, unless another program has changed it.
func (f *envFile) remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.written == nil {
		return nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil || !bytes.Equal(text, f.written) {
		return nil
	}
	if err := os.Remove(f.path); err != nil {
		return fmt.Errorf("remove --env-file: %w", err)
	}
	f.written = nil
	return nil
}
