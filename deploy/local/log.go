package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// logName is the file of the data directory that has every line of every process, and maxLog is the size over which a start empties it.
const (
	logName = "log"
	maxLog  = 16 << 20
)

// logFilter writes the lines of a stack to a file, and those that a newcomer needs to the terminal: the lines of the stack and of the
// build, and errors of the services. Each Write is one line, "NAME | TEXT".
type logFilter struct {
	file     io.Writer
	terminal io.Writer
	verbose  bool
}

// openLog opens the log in the data directory, which is created if needed.
func openLog(data string, terminal io.Writer, verbose bool) (filter *logFilter, closeFile func() error, err error) {
	if err := os.MkdirAll(data, 0o711); err != nil {
		return nil, nil, fmt.Errorf("create data directory: %w", err)
	}
	path := filepath.Join(data, logName)
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Truncate(path, 0); err != nil {
			return nil, nil, fmt.Errorf("empty the log: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the log: %w", err)
	}
	return &logFilter{file, terminal, verbose}, file.Close, nil
}

// Write writes one line.
func (f *logFilter) Write(line []byte) (int, error) {
	n, err := f.file.Write(line)
	if f.verbose || isNews(line) {
		_, terminalErr := f.terminal.Write(line)
		err = errors.Join(err, terminalErr)
	}
	return n, err
}

// isNews reports whether a line is one of the stack or the build, or a service's error.
func isNews(line []byte) bool {
	name, text, _ := bytes.Cut(line, []byte(" | "))
	if slices.Contains([]string{"stack", "build"}, string(bytes.TrimSpace(name))) {
		return true
	}
	var entry struct {
		Level string `json:"level"`
	}
	return json.Unmarshal(text, &entry) == nil && entry.Level == "ERROR"
}
