package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Command is the command of a child process.
type Command struct {
	// Name is the process's name in errors; empty: the last element of Path.
	Name string
	// Path is the program, looked up on PATH if it has no slash.
	Path string
	Args []string
	// Env is the whole environment; nil: this program's own.
	Env []string
	// Dir is the working directory; empty: this program's own.
	Dir string
	// Input is the standard input.
	Input string
	// Output receives each line of standard output and standard error, without its line ending, from one goroutine at a
	// time; nil discards them.
	Output func(line string)
	// OrphanSignal is sent to the process when this program dies without having stopped it; zero: SIGKILL.
	OrphanSignal syscall.Signal
	// AsServer has the process run as the user of Postgres servers where this program runs as root; NewServerDir is for its files.
	AsServer bool

	user *serverUser
}

// Process is a child process. It has its own process group, so that a Ctrl-C in the terminal reaches this program only, and it
// ends with this program, also after a SIGKILL. It is safe for concurrent use.
type Process struct {
	name     string
	cmd      *exec.Cmd
	watchdog *watchdog
	tail     tail
	done     chan struct{}
	err      error
}

// StartProcess starts c. The caller must call Stop or wait for Done.
func StartProcess(c Command) (*Process, error) {
	return start(c, hasParentDeathSignal)
}

// Run runs c to its end. If ctx ends first, the process and its children are stopped. The error has the last lines of the
// output.
func Run(ctx context.Context, c Command) error {
	// The parent death signal does not reach the children of a child, such as those of a compiler.
	p, err := start(c, false)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		_ = p.Stop(syscall.SIGTERM, 2*time.Second)
		return fmt.Errorf("%s: %w%s", p.name, context.Cause(ctx), p.Tail())
	}
}

func start(c Command, useParentDeathSignal bool) (*Process, error) {
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name(), err)
	}
	if c.AsServer {
		if c.user, err = findServerUser(); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(path, c.Args...) //nolint:noctx // the process runs until Stop
	p := &Process{name: c.name(), cmd: cmd, done: make(chan struct{})}
	output := &lineWriter{emit: func(line string) {
		p.tail.add(line)
		if c.Output != nil {
			c.Output(line)
		}
	}}
	p.cmd.Env, p.cmd.Dir = c.Env, c.Dir
	p.cmd.Stdout, p.cmd.Stderr = output, output
	if c.Input != "" {
		p.cmd.Stdin = strings.NewReader(c.Input)
	}
	// A grandchild in another process group may keep the output open.
	p.cmd.WaitDelay = 2 * time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.user.setCredential(p.cmd.SysProcAttr)

	signal := c.OrphanSignal
	if signal == 0 {
		signal = syscall.SIGKILL
	}
	if useParentDeathSignal {
		setParentDeathSignal(p.cmd.SysProcAttr, signal)
	} else if p.watchdog, err = newWatchdog(p.cmd, signal); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}

	started := make(chan error)
	go p.run(started, output)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return p, nil
}

// run starts the process and waits for it on one locked thread: the kernel sends the parent death signal when the thread ends
// that started the child (golang.org/issue/27505).
func (p *Process) run(started chan<- error, output *lineWriter) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	err := p.cmd.Start()
	if err == nil {
		err = p.watchdog.watch(p.cmd)
	}
	if err != nil {
		p.watchdog.stop()
		started <- err
		return
	}
	pid := p.cmd.Process.Pid
	started <- nil

	awaitExit(pid)
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	err = p.cmd.Wait()
	output.flush()
	p.watchdog.stop()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		p.err = fmt.Errorf("%s: %w%s", p.name, err, p.Tail())
	}
	close(p.done)
}

// PID is the process id; after the end, the id it had.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and Output has received all its lines.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is the error of a process that has ended, with the last lines of its output; nil for exit status 0 and before Done.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Tail is the last lines of the process's output, each after a line break and indented; empty if there are none.
func (p *Process) Tail() string { return p.tail.String() }

// Signal sends sig to the process, not to its group. It returns nil for a process that has ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// Stop sends sig and waits for the process to end. A process that still runs after grace is killed, which is an error. The rest
// of the process group is killed afterwards. For a process that has ended Stop does nothing.
func (p *Process) Stop(sig os.Signal, grace time.Duration) error {
	if err := p.Signal(sig); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	p.Kill()
	return fmt.Errorf("%s did not stop within %s and was killed", p.name, grace)
}

// Kill kills the process and its group and waits until they have ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (c Command) name() string {
	if c.Name != "" {
		return c.Name
	}
	return c.Path[strings.LastIndexByte(c.Path, '/')+1:]
}

// output runs a command and returns its output.
func output(ctx context.Context, c Command) (string, error) {
	var text bytes.Buffer
	c.Output = func(line string) { text.WriteString(line + "\n") }
	err := Run(ctx, c)
	return text.String(), err
}
