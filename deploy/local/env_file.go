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

// envFile tells other programs how to use the running stack. It exists only while what it says is true. An empty path stands
// for no file. It may be used concurrently.
type envFile struct {
	mu      sync.Mutex
	path    string
	written []byte
}

// newEnvFile removes what an earlier run has left at path: whoever waits for the file must not find an old one. A file that
// no run has written is refused.
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
		return nil, fmt.Errorf("look at --env-file: %w", err)
	}
	if len(text) > 0 && !bytes.HasPrefix(text, []byte("GATEWAY_URL=")) {
		return nil, fmt.Errorf("--env-file %s is a file of something else: name another", f.path)
	}
	if err := os.Remove(f.path); err != nil {
		return nil, fmt.Errorf("remove the old --env-file: %w", err)
	}
	return f, nil
}

// write puts the whole file in place at once, for the eyes of this user only.
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
		return fmt.Errorf("put --env-file in place: %w", err)
	}
	f.written = text
	return nil
}

// remove removes the file if it still is as write left it.
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
