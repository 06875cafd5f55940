package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchdog is the portable guard against orphans: a shell that reads from a pipe whose other end this program holds. When
// this program dies, however it dies, the kernel closes the pipe, and the shell ends the child's process group.
//
// The child itself waits behind a gate, a second such pipe, until its watchdog stands: there is no moment at which the child
// runs unguarded. The nil watchdog guards nothing.
type watchdog struct {
	signal syscall.Signal
	gate   [2]*os.File
	leash  *os.File
	shell  *exec.Cmd
}

const (
	// gateScript becomes the program once a line comes through file descriptor 3, and ends when none can come any more.
	gateScript = `IFS= read -r line <&3 || exit 125; exec 3<&-; exec "$@"`

	// watchScript ends process group $2 by signal $1 when its standard input closes without a word; unless that was SIGKILL
	// already, it follows after two seconds for what is still there.
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

// newWatchdog rewrites cmd, which is not started yet, so that it waits behind a gate.
func newWatchdog(cmd *exec.Cmd, signal syscall.Signal) (*watchdog, error) {
	w := &watchdog{signal: signal}
	var err error
	if w.gate[0], w.gate[1], err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("open the gate: %w", err)
	}
	cmd.Args = append([]string{"sh", "-c", gateScript, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.ExtraFiles = []*os.File{w.gate[0]}
	return w, nil
}

// watch puts the watchdog beside the child that has just been started and opens the gate.
func (w *watchdog) watch(child *exec.Cmd) error {
	if w == nil {
		return nil
	}
	group := strconv.Itoa(child.Process.Pid)
	w.shell = exec.Command("/bin/sh", "-c", watchScript, "sh", signalNames[w.signal], group) //nolint:noctx // it lives as long as the child
	w.shell.Dir = "/"
	w.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, leash, err := os.Pipe()
	if err != nil {
		return w.refuse(child, err)
	}
	defer read.Close()
	w.shell.Stdin, w.leash = read, leash
	if err := w.shell.Start(); err != nil {
		w.shell = nil
		return w.refuse(child, err)
	}
	if _, err := w.gate[1].WriteString("go\n"); err != nil {
		return w.refuse(child, err)
	}
	_ = w.gate[0].Close()
	_ = w.gate[1].Close()
	return nil
}

func (w *watchdog) refuse(child *exec.Cmd, err error) error {
	_ = child.Process.Kill()
	_ = child.Wait()
	return fmt.Errorf("start its watchdog: %w", err)
}

// dismiss ends the watchdog of a child that has been waited for.
func (w *watchdog) dismiss() {
	if w == nil {
		return
	}
	_ = w.gate[0].Close()
	_ = w.gate[1].Close()
	if w.leash != nil {
		_, _ = w.leash.WriteString("done\n")
		_ = w.leash.Close()
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
