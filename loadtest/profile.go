package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// profiled returns run, with a CPU profile of this duration of the process with these metrics written to path meanwhile. It costs the
// process one or two percent.
func profiled(run func(context.Context) (closedResult, error), metricsURL, path string, duration time.Duration) func(context.Context) (closedResult, error) {
	return func(ctx context.Context) (closedResult, error) {
		written := make(chan error, 1)
		go func() { written <- writeProfile(ctx, metricsURL, path, duration) }()
		result, err := run(ctx)
		return result, errors.Join(err, <-written)
	}
}

// profilePath is the path of a profile of a row.
func profilePath(dir, scenario, row string) string {
	name := strings.Trim(regexp.MustCompile("[^a-z0-9]+").ReplaceAllString(strings.ToLower(row), "-"), "-")
	return filepath.Join(dir, scenario+"-"+name+".pprof")
}

// writeProfile writes a CPU profile of the process with these metrics.
func writeProfile(ctx context.Context, metricsURL, path string, duration time.Duration) error {
	url := strings.TrimSuffix(metricsURL, "/metrics") + fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(duration.Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("profile a process: %w", err)
	}
	defer response.Body.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}
