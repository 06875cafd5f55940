package main_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/asynctest"
)

// By default the timer slack is the one that the process was given.
func TestTimerSlack(t *testing.T) {
	t.Parallel()
	program := build(t)
	inherited, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{"": string(inherited), "0s": string(inherited), "1ms": "1000000\n"} {
		variables := environment(t, coretest.Start(t, nil))
		operators := freeAddress(t)
		variables["GATEWAY_OPS_LISTEN"], variables["GATEWAY_TIMER_SLACK"] = operators, setting
		run := exec.CommandContext(t.Context(), program)
		for name, value := range variables {
			run.Env = append(run.Env, name+"="+value)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		asynctest.Eventually(t, "it is ready", func() bool { status, _ := get(t, "http://"+operators+"/readyz", ""); return status == http.StatusOK })
		// Only root may read it.
		if slack, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", run.Process.Pid)); err != nil {
			t.Logf("%q: %v", setting, err)
		} else if string(slack) != want {
			t.Errorf("%q: the timer slack is %q ns, want %q", setting, slack, want)
		}
		if err := run.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := run.Wait(); err != nil {
			t.Errorf("%q: after TERM: %v", setting, err)
		}
	}
}
