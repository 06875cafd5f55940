package system

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/freeport"
)

// Process is a program that a test starts, stops, kills and starts again. Changes of Command take effect at the next start.
type Process struct {
	Command embedded.Command
	// URL is where it is requested, OpsURL its operations listener; empty for programs without.
	URL, OpsURL string
	// Log is the output of all its starts.
	Log     asynctest.Buffer
	process *embedded.Process
}

// Prepare sets the command. When the test ends the process is killed, and its log is printed if the test has failed.
func (p *Process) Prepare(t *testing.T, command embedded.Command) {
	t.Helper()
	p.Command = command
	p.Command.Output = func(line string) { fmt.Fprintln(&p.Log, line) }
	t.Cleanup(func() {
		p.Signal(t, syscall.SIGCONT)
		p.Kill()
		if t.Failed() {
			t.Logf("the log of %s %s:\n%s", command.Path, p.URL, p.Log.String())
		}
	})
}

// PrepareService prepares a built service at free addresses, of which settings is told.
func (s *Suite) PrepareService(t *testing.T, p *Process, command embedded.Command, settings func(listen, ops string) []string) {
	t.Helper()
	listen, ops := freeport.Address(t), freeport.Address(t)
	p.URL, p.OpsURL = "http://"+listen, "http://"+ops
	command.Path = filepath.Join(s.Binaries, command.Path)
	command.Env = append(stack.Environ(), settings(listen, ops)...)
	p.Prepare(t, command)
}

// StartProcess starts a program until the test ends.
func StartProcess(t *testing.T, command embedded.Command) *Process {
	t.Helper()
	p := &Process{}
	p.Prepare(t, command)
	p.Start(t)
	return p
}

// Start starts it, again after Stop and Kill.
func (p *Process) Start(t *testing.T) {
	t.Helper()
	process, err := embedded.StartProcess(p.Command)
	if err != nil {
		t.Fatal(err)
	}
	p.process = process
}

// AwaitReady waits until /readyz of the operations listener says 200.
func (p *Process) AwaitReady(t *testing.T) {
	t.Helper()
	p.Await(t, "it is ready", func() bool { return IsOK(t, p.OpsURL+"/readyz") })
}

// Await waits until something holds, and fails the test if the process ends before.
func (p *Process) Await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	asynctest.Eventually(t, p.Command.Path+": "+what, func() bool {
		select {
		case <-p.process.Done():
			t.Fatalf("%s ended: %v", p.Command.Path, p.process.Err())
		default:
		}
		return holds()
	})
}

// Stop ends it as an operator does, with the time to finish its requests.
func (p *Process) Stop(t *testing.T) {
	t.Helper()
	if err := p.process.Stop(syscall.SIGTERM, 30*time.Second); err != nil {
		t.Error(err)
	}
}

// Kill ends it at once, if it runs.
func (p *Process) Kill() {
	if p.process != nil {
		p.process.Kill()
	}
}

// Signal sends it a signal, if it runs.
func (p *Process) Signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if p.process == nil {
		return
	}
	select {
	case <-p.process.Done():
	default:
		if err := p.process.Signal(signal); err != nil {
			t.Error(err)
		}
	}
}

// IsOK reports whether a URL is answered with 200.
func IsOK(t *testing.T, url string) bool {
	t.Helper()
	answer, err := probe(t, url)
	return err == nil && answer.Status == http.StatusOK
}

// probeTimeout is how long a process may take for a page of its operations listener.
const probeTimeout = 15 * time.Second

func probe(t *testing.T, url string) (Answer, error) {
	t.Helper()
	c := NewClient(t, url, "")
	c.HTTP = &http.Client{Transport: direct.Transport, Timeout: probeTimeout}
	return c.Try(http.MethodGet, "", nil)
}

// FindProgram is the path of the first of these programs that is installed. Where none is, the test is skipped, or fails if CI=true; install
// says what to do.
func FindProgram(t *testing.T, install string, names ...string) (path string) {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Skip(t, fmt.Sprintf("none of %q is installed: %s", names, install))
	return ""
}

// Skip skips a test that lacks something, and fails it if CI=true.
func Skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}
