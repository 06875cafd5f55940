package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchdog ends a child when this program dies, without the parent death signal of Linux: it is a shell that reads from a pipe
// whose other end this program has. When this program dies, the kernel closes the pipe, and the shell kills the child's
// process group.
//
// The child waits for a line on a second pipe until its watchdog runs, so that it never runs without one. The nil watchdog does
// nothing.
type watchdog struct {
	signal    syscall.Signal
	startPipe [2]*os.File
	liveness  *os.File
	shell     *exec.Cmd
}

const (
	// waitScript executes the program after a line on file descriptor 3, and exits if that is closed without one.
	waitScript = `IFS= read -r line <&3 || exit 125; exec 3<&-; exec "$@"`

	// watchScript sends signal $1 to process group $2 when its standard input is closed without a line, and after two seconds
	// SIGKILL.
	watchScript = `trap '' HUP INT TERM
if IFS= read -r line; then exit 0; fi
kill -s "$1" -- "-$2" 2>/dev/null || exit 0
if [ "$1" = KILL ]; then exit 0; fi
for tick in 1 2 3 4 5 6 7 8 9 10; do
	kill -s 0 -- "-$2" 2>/dev/null || exit 0
	sleep 0.2 2>/dev/null || sleep 1
done
kill -s KILL -- "-$2" 2>/dev/null`
)

// newWatchdog changes cmd, which is not started yet, so that it waits for the watchdog.
func newWatchdog(cmd *exec.Cmd, signal syscall.Signal) (*watchdog, error) {
	w := &watchdog{signal: signal}
	var err error
	if w.startPipe[0], w.startPipe[1], err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("open the start pipe: %w", err)
	}
	cmd.Args = append([]string{"sh", "-c", waitScript, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.ExtraFiles = []*os.File{w.startPipe[0]}
	return w, nil
}

// watch starts the watchdog of a child that has been started, and lets the child execute its program.
func (w *watchdog) watch(child *exec.Cmd) error {
	if w == nil {
		return nil
	}
	group := strconv.Itoa(child.Process.Pid)
	w.shell = exec.Command("/bin/sh", "-c", watchScript, "sh", signalNames[w.signal], group) //nolint:noctx // it runs as long as the child
	w.shell.Dir = "/"
	w.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, liveness, err := os.Pipe()
	if err != nil {
		return w.abort(child, err)
	}
	defer read.Close()
	w.shell.Stdin, w.liveness = read, liveness
	if err := w.shell.Start(); err != nil {
		w.shell = nil
		return w.abort(child, err)
	}
	if _, err := w.startPipe[1].WriteString("go\n"); err != nil {
		return w.abort(child, err)
	}
	_ = w.startPipe[0].Close()
	_ = w.startPipe[1].Close()
	return nil
}

func (w *watchdog) abort(child *exec.Cmd, err error) error {
	_ = child.Process.Kill()
	_ = child.Wait()
	return fmt.Errorf("start the watchdog: %w", err)
}

// stop ends the watchdog of a child that has ended.
func (w *watchdog) stop() {
	if w == nil {
		return
	}
	_ = w.startPipe[0].Close()
	_ = w.startPipe[1].Close()
	if w.liveness != nil {
		_, _ = w.liveness.WriteString("done\n")
		_ = w.liveness.Close()
	}
	if w.shell != nil {
		_ = w.shell.Wait()
	}
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGKILL: "KILL",
	syscall.SIGQUIT: "QUIT",
	syscall.SIGTERM: "TERM",
	syscall.SIGINT:  "INT",
}
