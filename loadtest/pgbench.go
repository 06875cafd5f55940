package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

var pgbenchTransactions = regexp.MustCompile(`number of transactions actually processed: ([0-9]+)`)

// pgbenchRows runs a script with pgbench and returns how many rows it inserted, one in each transaction.
func pgbenchRows(ctx context.Context, pgbench, databaseURL, script string, clients int, duration time.Duration) (int, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return 0, err
	}
	command := exec.CommandContext(ctx, pgbench, "-n", "-M", "prepared", "-f", script, "-c", strconv.Itoa(clients), "-j", "2",
		"-T", strconv.Itoa(int(duration.Seconds())), "-h", u.Query().Get("host"), "-U", u.User.Username(), u.Path[1:])
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		return 0, fmt.Errorf("run pgbench: %w\n%s", err, out.String())
	}
	match := pgbenchTransactions.FindSubmatch(out.Bytes())
	if match == nil {
		return 0, fmt.Errorf("pgbench printed no number of transactions:\n%s", out.String())
	}
	return strconv.Atoi(string(match[1]))
}

// findPgbench looks on PATH and in Debian's directories.
func findPgbench() (string, error) {
	if path, err := exec.LookPath("pgbench"); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) == 0 {
		return "", errors.New("pgbench is not installed; on Debian: apt-get install postgresql")
	}
	return found[len(found)-1], nil
}
