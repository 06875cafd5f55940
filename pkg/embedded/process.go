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

// Command says what to run as a child process.
type Command struct {
	// Name is what errors call the process; empty: the last element of Path.
	Name string
	// Path is the program, looked up on PATH when it has no slash.
	Path string
	Args []string
	// Env is the whole environment; nil: this program's own.
	Env []string
	// Dir is the working directory; empty: this program's own.
	Dir string
	// Input is what the process reads on its standard input; empty: nothing.
	Input string
	// Output receives each line of standard output and standard error, without its line ending, from one goroutine at a
	// time; nil discards them.
	Output func(line string)
	// OrphanSignal ends the process when this program dies without having stopped it; zero: SIGKILL.
	OrphanSignal syscall.Signal

	owner *owner
}

// Process is a running child. It leads a process group of its own, so that a Ctrl-C in the terminal reaches this program
// only, and it does not outlive this program, however that ends. Its methods may be called concurrently.
type Process struct {
	name  string
	cmd   *exec.Cmd
	guard *watchdog
	tail  tail
	done  chan struct{}
	err   error
}

// StartProcess starts c. Whoever starts a process stops it, or waits for Done.
func StartProcess(c Command) (*Process, error) {
	return start(c, kernelWatches)
}

// Run runs c to its end. When ctx ends first, the process and its children are ended. The error holds the last lines that
// the process wrote.
func Run(ctx context.Context, c Command) error {
	// A job such as a compiler starts children of its own, which the kernel's parent-death signal would not reach.
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

func start(c Command, kernel bool) (*Process, error) {
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name(), err)
	}
	cmd := exec.Command(path, c.Args...) //nolint:noctx // it lives until Stop, beyond any one call
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
	// A grandchild that has left the process group may hold the output open for ever.
	p.cmd.WaitDelay = 2 * time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.owner.apply(p.cmd.SysProcAttr)

	signal := c.OrphanSignal
	if signal == 0 {
		signal = syscall.SIGKILL
	}
	if kernel {
		setParentDeathSignal(p.cmd.SysProcAttr, signal)
	} else if p.guard, err = newWatchdog(p.cmd, signal); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}

	started := make(chan error)
	go p.run(started, output)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return p, nil
}

// run starts the process and waits for it on one locked thread: the kernel takes the end of the thread that started a
// child for the death of its parent (golang.org/issue/27505).
func (p *Process) run(started chan<- error, output *lineWriter) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	err := p.cmd.Start()
	if err == nil {
		err = p.guard.watch(p.cmd)
	}
	if err != nil {
		p.guard.dismiss()
		started <- err
		return
	}
	pid := p.cmd.Process.Pid
	started <- nil

	awaitExit(pid)
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	err = p.cmd.Wait()
	output.flush()
	p.guard.dismiss()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		p.err = fmt.Errorf("%s: %w%s", p.name, err, p.Tail())
	}
	close(p.done)
}

// PID is the process id; after the end, the id it had.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and all its output was delivered.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err tells, after Done, how the process ended: nil for exit status 0, else an error with the last lines it wrote.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Tail is the last lines the process wrote, each indented on a line of its own and led by a line break; empty when it wrote
// nothing.
func (p *Process) Tail() string { return p.tail.String() }

// Signal sends sig to the process, not to its group. It is nil for a process that has ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// Stop sends sig and waits for the end; what is left after grace is killed, which is an error. Whichever way the process
// ends, the rest of its group is killed after it. Stopping an ended process is fine.
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

// Kill ends the process and its group at once and waits until they are gone.
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

// output runs a short command and returns what it wrote.
func output(ctx context.Context, c Command) (string, error) {
	var text bytes.Buffer
	c.Output = func(line string) { text.WriteString(line + "\n") }
	err := Run(ctx, c)
	return text.String(), err
}
