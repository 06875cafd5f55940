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

// profile writes a CPU profile of this duration, if the row is the gateway's and profiles is set. It costs the gateway one or two
// percent.
func (b *bench) profile(ctx context.Context, r *row, duration time.Duration) <-chan error {
	done := make(chan error, 1)
	if b.profiles == "" || r.address != b.gatewayAddress {
		done <- nil
		return done
	}
	path := profilePath(b.profiles, "edge", r.Group)
	go func() { done <- writeProfile(ctx, b.metricsURL, path, duration) }()
	return done
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
