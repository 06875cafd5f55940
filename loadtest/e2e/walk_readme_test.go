package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// localStart bounds the start of the command with its local chains, whose first build takes minutes on a busy machine.
const localStart = 8 * time.Minute

// readmeWalk runs the commands of README.md's section "The walk" in a shell, beside a stack that deploy/local runs.
type readmeWalk struct {
	t       *testing.T
	root    string
	env     []string
	setup   string   // the definition of create
	creates []string // a transfer, a swap, a bridge, and a bridge that is refunded
	// The commands of the second block.
	send, sendCall, report, events, refund string
	seen                                   []walkEvent
	next                                   string
}

type walkEvent struct {
	Type string
	Data struct{ ID, Status string }
}

// walkIntent is what the walk reads of an intent.
type walkIntent struct {
	ID, Type, Status string
	Deadline         time.Time
	Tx               struct {
		From  string
		Calls struct{ Calls []struct{ To, Data string } }
	}
}

// The walk of README.md, word for word: only ID, FROM, TO, DATA and HASH are filled in, and NEXT as the comment says. It waits for a
// deadline, so it starts among the first: Go starts parallel tests in the reverse order of their files' names.
func TestReadme_Walk(t *testing.T) {
	t.Parallel()
	w := startReadmeWalk(t)
	viem := w.startLifecycles()
	began := time.Now()
	var intents []walkIntent
	for _, create := range w.creates {
		intents = append(intents, decoded[walkIntent](t, w.run(create)))
	}
	transfer, swap, bridge, refused := intents[0], intents[1], intents[2], intents[3]
	for n, want := range []string{"transfer", "swap", "bridge", "bridge"} {
		if intents[n].Type != want || intents[n].Status != "created" {
			t.Errorf("intent %d: %+v, want a %s", n, intents[n], want)
		}
	}
	w.sendByHand(transfer)
	for _, intent := range []walkIntent{swap, bridge, refused} {
		w.run(filled(w.send, "ID", intent.ID))
	}
	w.await(map[string]string{transfer.ID: "confirmed", swap.ID: "filled", bridge.ID: "filled", refused.ID: "confirmed"})
	t.Logf("from the first intent to confirmed and filled: %s", time.Since(began).Round(time.Second))

	w.fails(filled(w.send, "ID", transfer.ID), "is confirmed: only an intent that is created")
	w.fails(filled(w.send, "ID", "01a20531-e6b7-75ad-9988-f9e9d0ceb032"), "has no intent with the id")
	w.fails(filled(w.refund, "ID", swap.ID), "is filled and not refundable now")
	poor := strings.ReplaceAll(w.creates[0], alice, "0x1111111111111111111111111111111111111111")
	w.fails(filled(w.send, "ID", decoded[walkIntent](t, w.run(poor)).ID), "faucet_fund")
	foreign := strings.NewReplacer("eip155:31337", "eip155:11155111", "0xE1620de3a36756143582895e7E426Ade69e4f2D7", usdc).Replace(w.creates[0])
	w.fails(filled(w.send, "ID", decoded[walkIntent](t, w.run(foreign)).ID), "eip155:11155111 is no local chain")

	timer := time.NewTimer(time.Until(refused.Deadline.Add(2 * time.Second))) // the chain's clock is that of its last block
	defer timer.Stop()
	<-timer.C
	eventually(t, func() error {
		out, err := w.shell(filled(w.refund, "ID", refused.ID))
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	w.await(map[string]string{refused.ID: "refunded"})
	t.Logf("from the first intent to refunded: %s", time.Since(began).Round(time.Second))
	t.Run("every kind with viem", viem)
}

// startReadmeWalk starts the command, waits for its local chains, and reads README.md.
func startReadmeWalk(t *testing.T) *readmeWalk {
	t.Helper()
	root, err := stack.FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := &readmeWalk{t: t, root: root, env: withCurl(t, append(stack.Environ(),
		"LOCAL_DATA="+filepath.Join(dir, "data"), "LOCAL_DATABASE_URL=", "LOCAL_REDIS_URL=", "GOFLAGS=-buildvcs=false"))}
	w.readCommands()

	program := filepath.Join(dir, "local")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./deploy/local")
	build.Dir, build.Env = root, w.env
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build deploy/local: %v\n%s", err, out)
	}
	var log asynctest.Buffer
	told := make(chan string, 2)
	began := time.Now()
	process, err := embedded.StartProcess(embedded.Command{
		Path: program, Args: []string{"--listen", "127.0.0.1:0"}, Env: w.env, Dir: root,
		Output: func(line string) {
			fmt.Fprintln(&log, line)
			if line == "The service is ready." || strings.Contains(line, "local chains are ready") || strings.Contains(line, "no local chains") {
				t.Logf("%s after %s", line, time.Since(began).Round(100*time.Millisecond))
				told <- line
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(syscall.SIGINT, 30*time.Second); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			out, _ := os.ReadFile(filepath.Join(dir, "data", "log"))
			t.Logf("the command's output:\n%s\nits log:\n%s", log.String(), out)
		}
	})
	timer := time.NewTimer(localStart)
	defer timer.Stop()
	for range 2 {
		select {
		case line := <-told:
			if strings.Contains(line, "no local chains") {
				t.Fatal(line)
			}
		case <-process.Done():
			t.Fatalf("the command ended: %v", process.Err())
		case <-timer.C:
			t.Fatalf("the local chains are not ready after %s", localStart)
		}
	}
	w.readEnv()
	for _, create := range w.creates[:3] { // each kind
		if banner := strings.Join(strings.Fields(log.String()), " "); !strings.Contains(banner, strings.Join(strings.Fields(create), " ")) {
			t.Errorf("the banner does not show\n%s", create)
		}
	}
	return w
}

// readCommands takes the commands from README.md. Each begins at the start of a line.
func (w *readmeWalk) readCommands() {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.root, "README.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## The walk\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for n, block := range strings.Split(section, "```") {
		if n%2 == 0 {
			continue
		}
		for line := range strings.Lines(strings.TrimPrefix(block, "sh\n")) {
			if strings.HasPrefix(line, " ") {
				commands[len(commands)-1] += line
			} else {
				commands = append(commands, line)
			}
		}
	}
	if len(commands) != 11 || !strings.HasPrefix(commands[0], "eval ") || !strings.HasPrefix(commands[1], "create() ") {
		w.t.Fatalf("README.md has other commands than this test knows: %q", commands)
	}
	w.setup, w.creates = commands[0]+commands[1], commands[2:6]
	w.send, w.sendCall, w.report, w.events, w.refund = commands[6], commands[7], commands[8], commands[9], commands[10]
}

// readEnv runs the first command once and keeps what it sets.
func (w *readmeWalk) readEnv() {
	w.t.Helper()
	evaluate, create, _ := strings.Cut(w.setup, "\n")
	w.setup = ""
	w.env = slices.Collect(strings.Lines(w.run("set -a\n" + evaluate + "\nenv")))
	for n, line := range w.env {
		w.env[n] = strings.TrimSpace(line)
	}
	w.setup = create
}

// run runs a command in a shell at the root of the checkout and returns its standard output.
func (w *readmeWalk) run(command string) string {
	w.t.Helper()
	out, err := w.shell(command)
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// fails runs a command that must fail and say so.
func (w *readmeWalk) fails(command, want string) {
	w.t.Helper()
	if out, err := w.shell(command); err == nil || !strings.Contains(err.Error(), want) {
		w.t.Errorf("%s: %v %s, want %q", command, err, out, want)
	}
}

func (w *readmeWalk) shell(command string) (string, error) {
	shell := exec.CommandContext(w.t.Context(), "sh", "-c", w.setup+"\n"+command)
	shell.Dir, shell.Env = w.root, w.env
	var complaint strings.Builder
	shell.Stderr = &complaint
	out, err := shell.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, complaint.String())
	}
	return string(out), err
}

// sendByHand sends each call of an intent by eth_sendTransaction and reports the hash of the last.
func (w *readmeWalk) sendByHand(intent walkIntent) {
	w.t.Helper()
	var sent struct{ Result string }
	for _, call := range intent.Tx.Calls.Calls {
		sent = decoded[struct{ Result string }](w.t, w.run(filled(w.sendCall, "FROM", intent.Tx.From, "TO", call.To, "DATA", call.Data)))
	}
	if got := decoded[walkIntent](w.t, w.run(filled(w.report, "ID", intent.ID, "HASH", sent.Result))); got.Status != "submitted" {
		w.t.Errorf("after the report of %q: %+v", sent.Result, got)
	}
}

// await reads events until each of the intents has had a status.
func (w *readmeWalk) await(want map[string]string) {
	w.t.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; {
		missing := map[string]string{}
		for id, status := range want {
			if !slices.ContainsFunc(w.seen, func(e walkEvent) bool { return e.Data.ID == id && e.Type == "transfer."+status }) {
				missing[id] = status
			}
		}
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("no event that %v; events: %+v", missing, w.seen)
		}
		command := w.events
		if w.next != "" {
			command = strings.Replace(command, "wait=25", "wait=25&after="+w.next, 1)
		}
		page := decoded[struct {
			Events []walkEvent
			Next   string
		}](w.t, w.run(command))
		w.seen, w.next = append(w.seen, page.Events...), page.Next
	}
}

// filled is a command with its placeholders filled in; the rest is pairs of a placeholder and its value.
func filled(command string, pairs ...string) string {
	for n := 0; n < len(pairs); n += 2 {
		command = regexp.MustCompile(`\b`+pairs[n]+`\b`).ReplaceAllLiteralString(command, pairs[n+1])
	}
	return command
}

func decoded[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}
