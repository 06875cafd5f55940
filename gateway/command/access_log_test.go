package command_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/freeport"
)

// Nobody reads the program's standard output while it answers more requests than its buffers hold lines. Every request is
// answered, and in the end each has a line or is among those that lines report as dropped.
func TestAccessLog_BlockedStdout(t *testing.T) {
	t.Parallel()
	variables := environment(t, coretest.Start(t, nil))
	address, operators := freeport.Address(t), freeport.Address(t)
	variables["GATEWAY_LISTEN"], variables["GATEWAY_OPS_LISTEN"], variables["GATEWAY_ACCESS_LOG"] = address, operators, "true"
	unread, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	run := exec.CommandContext(t.Context(), build(t))
	for name, value := range variables {
		run.Env = append(run.Env, name+"="+value)
	}
	run.Stdout, run.Stderr = output, os.Stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	_ = output.Close()
	asynctest.Eventually(t, "it is ready", func() bool { status, _ := get(t, "http://"+operators+"/readyz", ""); return status == http.StatusOK })

	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	dropped := func() int {
		_, metrics := get(t, "http://"+operators+"/metrics", "")
		found := regexp.MustCompile(`(?m)^intents_gateway_access_log_dropped_total (\S+)$`).FindStringSubmatch(metrics)
		if found == nil {
			t.Fatal("no metric counts dropped lines")
		}
		count, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(count)
	}
	const together = 100
	answered, slowest := 0, time.Duration(0)
	for dropped() == 0 {
		for range 20 {
			began := time.Now()
			if err := conn.SetDeadline(began.Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, strings.Repeat("GET /health HTTP/1.1\r\nHost: a\r\n\r\n", together)); err != nil {
				t.Fatal(err)
			}
			for range together {
				answer, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Fatalf("after %d answers: %v", answered, err)
				}
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusNoContent {
					t.Fatalf("status %d", answer.StatusCode)
				}
				answered++
			}
			slowest = max(slowest, time.Since(began))
		}
	}
	lost := dropped()
	t.Logf("%d requests were answered, %d at a time in %s at most; %d lines were dropped", answered, together, slowest, lost)
	if slowest > 5*time.Second {
		t.Errorf("the slowest %d answers took %s", together, slowest)
	}

	// Once it is read again, and ends, nothing is missing without a word.
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	lines, reported := 0, 0
	for all := bufio.NewScanner(unread); all.Scan(); {
		var line struct {
			Msg   string
			Route string
			Lines int
		}
		if err := json.Unmarshal(all.Bytes(), &line); err != nil {
			t.Errorf("%q: %v", all.Text(), err)
		}
		switch {
		case line.Route == "/health":
			lines++
		case strings.HasPrefix(line.Msg, "log lines were dropped"):
			reported += line.Lines
		}
	}
	if err := run.Wait(); err != nil {
		t.Errorf("after TERM: %v", err)
	}
	if reported != lost || lines+reported != answered {
		t.Errorf("of %d requests %d have lines, %d are reported as dropped, %d were counted", answered, lines, reported, lost)
	}
}
