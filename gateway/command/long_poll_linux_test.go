package command_test

import (
	"bufio"
	"fmt"
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
	"intents.internal/gateway/polls"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/freeport"
	"intents.internal/pkg/wire"
)

const (
	// parkedPolls are from as few accounts as may have so many.
	parkedPolls = 10_000
	// maxPollBytes bounds what one of them adds to the gateway's resident set: about 20 KiB, of which 13 are in use and the rest
	// is as much garbage as there happens to be.
	maxPollBytes = 24 << 10

	waitingRequest = "GET /v2/events?after=now&wait=25 HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: client/1.0\r\n" +
		"Accept: application/json\r\nx-api-key: %s\r\n\r\n"
)

// Requests that wait for events are cheap to hold: for the whole program, of 10,000 connections, with all that it takes to
// serve them.
func TestGateway_LongPollMemory(t *testing.T) { //nolint:paralleltest // it needs most of the files that a process may open
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < parkedPolls*3/2 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the process may open %d files, %d are needed, %v", files.Cur, parkedPolls*3/2, err)
		}
		t.Skipf("the process may open %d files, %d are needed, %v", files.Cur, parkedPolls*3/2, err)
	}
	core := coretest.Start(t, nil)
	core.Public = core.Events.ServeHTTP
	variables := environment(t, core)
	variables["GATEWAY_LISTEN"], variables["GATEWAY_OPS_LISTEN"] = freeport.Address(t), freeport.Address(t)
	variables["GATEWAY_MAX_CONNS_PER_IP"] = "0"
	run := exec.CommandContext(t.Context(), build(t))
	for name, value := range variables {
		run.Env = append(run.Env, name+"="+value)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = run.Wait() }()
	defer func() { _ = run.Process.Signal(syscall.SIGTERM) }()
	ops := "http://" + variables["GATEWAY_OPS_LISTEN"]
	asynctest.Eventually(t, "it is ready", func() bool { status, _ := get(t, ops+"/readyz", ""); return status == http.StatusOK })
	before := resident(t, run.Process.Pid)

	answered := regexp.MustCompile(`\nintents_gateway_stage_duration_seconds_count{stage="core"} (\d+)\n`)
	await := func(waiting int) {
		t.Helper()
		asynctest.Completes(t, "all of them wait", func() (answers int, complete bool) {
			_, metrics := get(t, ops+"/metrics", "")
			if found := answered.FindStringSubmatch(metrics); found != nil {
				answers, _ = strconv.Atoi(found[1])
			}
			return answers, answers == waiting && strings.Contains(metrics, fmt.Sprintf("\nintents_gateway_long_polls %d\n", waiting))
		})
	}
	began := time.Now()
	for n := range parkedPolls / polls.MaxPerKey {
		if opened := n * polls.MaxPerKey; opened > 0 && opened%500 == 0 {
			await(opened) // more at once would be refused on a slow machine
		}
		key := apikey.New(network.Test)
		core.Put(key, wire.VerifiedKey{AccountID: fmt.Sprint(n * polls.MaxPerKey / polls.MaxPerAccount)})
		for range polls.MaxPerKey {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", variables["GATEWAY_LISTEN"])
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := fmt.Fprintf(c, waitingRequest, key.Reveal()); err != nil {
				t.Fatal(err)
			}
		}
	}
	await(parkedPolls)
	after := resident(t, run.Process.Pid)
	each := (after - before) / parkedPolls
	t.Logf("%d requests wait after %s: %d MiB resident, %d MiB before, %d bytes each", parkedPolls, time.Since(began), after>>20, before>>20, each)
	if each > maxPollBytes {
		t.Errorf("each takes %d bytes, at most %d are allowed", each, maxPollBytes)
	}
}

// resident is the resident set of a process in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "VmRSS:"); found {
			kibibytes, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(text, "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kibibytes << 10
		}
	}
	t.Fatal("the process has no resident set")
	return 0
}
