package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// envName is the environment file that a running stack keeps in its data directory.
const envName = "env"

// errNotRunning says that no stack runs with the data directory.
var errNotRunning = errors.New("no stack is running with this data directory: start one with `go run ./deploy/local`, or name its directory with --data DIR")

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

// apiError is an error response of the API.
type apiError struct {
	Status  int
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

// api is a client of the running stack's API with the demo account's test key.
type api struct {
	base, key string
	http      *http.Client
}

// call decodes the response to a request into result. An error response is an *apiError.
func (a api) call(ctx context.Context, method, path string, body, result any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, nil)
	if err != nil {
		return err
	}
	if body != nil {
		request.Body = io.NopCloser(bytes.NewReader(text))
		request.ContentLength = int64(len(text))
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("X-Api-Key", a.key)
	response, err := a.http.Do(request)
	if err != nil {
		return fmt.Errorf("the gateway does not answer, so the stack is probably not running any more: %w", err)
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(response.Body, 1<<20)); err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	if response.StatusCode != http.StatusOK {
		failure := &apiError{Status: response.StatusCode}
		if json.Unmarshal(text, failure) != nil {
			failure.Message = strings.TrimSpace(string(text))
		}
		return failure
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	return nil
}
