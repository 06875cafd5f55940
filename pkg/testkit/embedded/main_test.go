package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"intents.internal/pkg/testkit/embedded"
)

// roleVariable makes the test binary play a program that is about to be killed.
const roleVariable = "EMBEDDED_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		select {}
	}
	os.Exit(m.Run())
}

// play starts children as role wants it and prints their ids.
func play(role string) error {
	sleeper := embedded.Command{Path: "sh", Args: []string{"-c", "sleep 300 & echo $!; wait"}}
	sleeper.Output = func(line string) { fmt.Println(line) }
	switch role {
	case "guarded":
		p, err := embedded.StartWithWatchdog(sleeper)
		if err == nil {
			fmt.Println(p.PID())
		}
		return err
	case "job":
		return embedded.Run(context.Background(), sleeper)
	case "postgres":
		p, err := embedded.StartPostgres(context.Background(), embedded.PostgresConfig{Ephemeral: true})
		if err == nil {
			fmt.Println(embedded.DataOf(p))
		}
		return err
	}
	return fmt.Errorf("no role %q", role)
}

// killedParent runs role in a process of its own, reads count lines from it and kills it with SIGKILL.
func killedParent(t *testing.T, role string, count int) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for scanner := bufio.NewScanner(out); len(lines) < count && scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(lines) < count || strings.HasPrefix(lines[0], "error:") {
		t.Fatalf("the %s parent printed %q", role, lines)
	}
	return lines
}

// gone tells whether no process has the id, zombies not counted.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
