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

	"github.com/google/go-cmp/cmp"

	"intents.internal/deploy/stack"
	"intents.internal/deploy/walk"
	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// localStart bounds the start of the command with its local chains, whose first build takes minutes on a busy machine.
const localStart = 8 * time.Minute

// leastDeadline is little more than the least that a bridge from the local chains can have.
const leastDeadline = "66 seconds"

// tether is a token of the local chains that refuses to change an allowance that is not zero.
const tether = "0x7688CF3f08d8bd601797a7776eCA1dd71A0bB581"

// euro is a token of the local chains that takes signed authorizations.
const euro = "0x0Ae627987397e9aaADEeea8D9B57E01C48c504FE"

// localSolver is the account of the demonstration solver.
const localSolver = "0xE7c89F39Fc0eF4C1C7D9e5bF09E51aa5540353CB"

// The first intent of README.md and the walk of deploy/local/README.md, word for word, beside a stack that deploy/local runs: only ID, FROM, TO, DATA and HASH are filled in, NEXT as the
// comment says, and a deadline that no person has to meet. It waits for an order that expires, and uses the console's quotes meanwhile, so it
// must start among the first: Go starts parallel tests in the reverse order of their files' names, of which this one's is near the end.
func TestReadme_Walk(t *testing.T) {
	t.Parallel()
	w := startReadmeWalk(t)
	viem := w.startLifecycles()
	var made []intents.Transfer
	quotes := decoded[intents.QuoteList](t, w.run(w.commands[3])).Quotes
	if len(quotes) != 1 {
		t.Fatalf("quotes: %+v, want the local solver's", quotes)
	}
	soon := strings.Replace(w.commands[6], "90 seconds", leastDeadline, 1)
	for n, create := range []string{w.commands[2], filled(w.commands[4], "QUOTE", quotes[0].ID), w.commands[5], soon} {
		made = append(made, decoded[intents.Transfer](t, w.run(create)))
		if want := []intents.TransferType{"transfer", "swap", "bridge", "bridge"}[n]; made[n].Type != want || made[n].Status != "created" {
			t.Errorf("intent %d: %+v, want a %s", n, made[n], want)
		}
	}
	send, sendCall, report, refund := w.commands[7], w.commands[8], w.commands[9], w.commands[11]
	transfer, swap, bridge, unfilled := made[0], made[1], made[2], made[3]
	w.run(filled(send, "ID", unfilled.ID)) // its deadline is near
	var sent struct{ Result string }
	for _, call := range transfer.Tx.Calls.Calls {
		sent = decoded[struct{ Result string }](t, w.run(filled(sendCall, "FROM", transfer.Tx.From, "TO", call.To, "DATA", call.Data)))
	}
	if got := decoded[intents.Transfer](t, w.run(filled(report, "ID", transfer.ID, "HASH", sent.Result))); got.Status != "submitted" {
		t.Errorf("after the report of %q: %+v", sent.Result, got)
	}
	for _, intent := range []intents.Transfer{swap, bridge} {
		w.run(filled(send, "ID", intent.ID))
	}
	w.await(map[string]string{transfer.ID: "confirmed", swap.ID: "filled", bridge.ID: "filled", unfilled.ID: "confirmed"})

	poor := strings.ReplaceAll(w.commands[2], alice, "0x1111111111111111111111111111111111111111")
	foreign := strings.NewReplacer("eip155:31337", "eip155:11155111", localUSDC, usdc).Replace(w.commands[2])
	for command, want := range map[string]string{
		filled(send, "ID", transfer.ID):                                     "is confirmed: only an intent that is created",
		filled(send, "ID", "01a20531-e6b7-75ad-9988-f9e9d0ceb032"):          "has no intent with the id",
		filled(refund, "ID", swap.ID):                                       "is filled and not refundable now",
		filled(send, "ID", decoded[intents.Transfer](t, w.run(poor)).ID):    "faucet_fund",
		filled(send, "ID", decoded[intents.Transfer](t, w.run(foreign)).ID): "eip155:11155111 is no local chain",
	} {
		if out, err := w.shell(command); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %s, want %q", command, err, out, want)
		}
	}

	t.Run("quotes in the console", w.walkQuotes)
	t.Run("signing in the console", w.walkSigning)

	w.payBatch(send)
	w.checkSigning()
	w.signBridge(send)
	w.checkLists()

	go func() { // what is left is a wait
		underWay.Wait()
		shared.Turn.Unlock()
	}()
	timer := time.NewTimer(time.Until(time.Unix(unfilled.Order.Expires+2, 0))) // the chain's clock is that of its last block
	defer timer.Stop()
	<-timer.C
	asynctest.Succeeds(t, func() error {
		_, err := w.shell(filled(refund, "ID", unfilled.ID))
		return err
	})
	w.await(map[string]string{unfilled.ID: "refunded"})
	t.Run("every kind with viem", viem)
}

// readmeWalk runs the commands of both in a shell, beside a stack that deploy/local runs.
type readmeWalk struct {
	t        *testing.T
	root     string
	commands []string // eval, create(), a transfer, a quote, a swap of it, two bridges, send, send by hand, report, events, refund, a batch, a bridge to sign
	env      []string
	next     string          // the cursor of the events
	seen     map[string]bool // the statuses that events have told of, by intent
}

// startReadmeWalk starts the command, waits for its local chains, and reads the pages.
func startReadmeWalk(t *testing.T) *readmeWalk {
	t.Helper()
	system.FindProgram(t, "on Debian: apt-get install curl", "curl")
	root := must(stack.FindRoot())(t)
	dir := t.TempDir()
	w := &readmeWalk{t: t, root: root, seen: map[string]bool{}, env: append(stack.Environ(),
		"LOCAL_DATA="+filepath.Join(dir, "data"), "LOCAL_DATABASE_URL=", "LOCAL_REDIS_URL=", "GOFLAGS=-buildvcs=false")}
	w.readCommands()
	program := filepath.Join(dir, "local")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./deploy/local")
	build.Dir, build.Env = root, w.env
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build deploy/local: %v\n%s", err, out)
	}
	var log asynctest.Buffer
	ready := make(chan string, 1)
	process, err := embedded.StartProcess(embedded.Command{
		Path: program, Args: []string{"--listen", "127.0.0.1:0"}, Env: w.env, Dir: root,
		Output: func(line string) {
			fmt.Fprintln(&log, line)
			if strings.Contains(line, "local chains are ready") || strings.Contains(line, "no local chains") {
				ready <- line
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
	select {
	case line := <-ready:
		if strings.Contains(line, "no local chains") {
			t.Fatal(line)
		}
	case <-process.Done():
		t.Fatalf("the command ended: %v", process.Err())
	case <-timer.C:
		t.Fatalf("the local chains are not ready after %s", localStart)
	}
	w.env = slices.Collect(strings.SplitSeq(strings.TrimSpace(w.run("set -a\n"+w.commands[0]+"\nenv")), "\n"))
	banner := strings.Join(strings.Fields(log.String()), " ")
	for _, command := range w.commands[2:6] { // a transfer, a quote, a swap of it, a bridge
		if !strings.Contains(banner, strings.Join(strings.Fields(command), " ")) {
			t.Errorf("the banner does not show\n%s", command)
		}
	}
	return w
}

// readCommands takes the commands from the pages. Each begins at the start of a line.
func (w *readmeWalk) readCommands() {
	w.t.Helper()
	for _, step := range must(walk.Read(w.root))(w.t) {
		w.commands = append(w.commands, step.Commands...)
	}
	if len(w.commands) != 14 || !strings.HasPrefix(w.commands[0], "eval ") || !strings.HasPrefix(w.commands[1], "create() ") {
		w.t.Fatalf("the pages have other commands than this test knows: %q", w.commands)
	}
}

// payBatch creates the batch of three, gets the same one again, and sends it.
func (w *readmeWalk) payBatch(send string) {
	w.t.Helper()
	made, again := decoded[intents.CreatedBatch](w.t, w.run(w.commands[12])), decoded[intents.CreatedBatch](w.t, w.run(w.commands[12]))
	if made.ID == "" || again.ID != made.ID || made.Count != 3 || len(made.Transfers) != 3 {
		w.t.Fatalf("made %+v, again %+v", made, again)
	}
	confirmed := map[string]string{}
	for n, intent := range made.Transfers {
		if intent.BatchID == nil || *intent.BatchID != made.ID || intent.Tx == nil || intent.ID != again.Transfers[n].ID {
			w.t.Errorf("intent %d: %+v", n, intent)
		}
		confirmed[intent.ID] = "confirmed"
	}
	w.run(filled(send, "ID", made.ID))
	w.await(confirmed)
}

// checkSigning has core prove what the local chains' lists say of signing.
func (w *readmeWalk) checkSigning() {
	w.t.Helper()
	for command, proven := range map[string]string{"chains check": " local permit2,erc3009 ", "tokens check": `"Test Euro Coin" "2" bytes`} {
		out := w.run(`CORE_DATABASE_URL="$DATABASE_URL" CORE_RPC_FILE="$LOCAL_DATA/rpc.json" "$LOCAL_DATA/bin/core" ` + command)
		if strings.Count(out, proven) != 2 {
			w.t.Errorf("%s does not say %q of both chains:\n%s", command, proven, out)
		}
	}
}

// signBridge creates the bridge that its user signs, and signs it. The local solver opens it.
func (w *readmeWalk) signBridge(send string) {
	w.t.Helper()
	made := decoded[intents.Transfer](w.t, w.run(w.commands[13]))
	if made.Tx != nil || made.Signing == nil || made.Signing.TypedData == nil {
		w.t.Fatalf("made %+v", made)
	}
	w.run(filled(send, "ID", made.ID))
	w.await(map[string]string{made.ID: "filled"})
	read := decoded[intents.Transfer](w.t, w.run(`curl -s $GATEWAY_URL/v2/transfers/`+made.ID+` -H "x-api-key: $TEST_KEY"`))
	opened := decoded[struct{ Result struct{ From string } }](w.t, w.run(fmt.Sprintf(
		`curl -s $CHAIN_31337_RPC_URL -H 'content-type: application/json' -d '{"jsonrpc": "2.0", "id": 1, "method": "eth_getTransactionByHash", "params": [%q]}'`,
		read.Metadata.Hash)))
	if !strings.EqualFold(opened.Result.From, localSolver) {
		w.t.Errorf("%s opened %+v, want the solver", opened.Result.From, read)
	}
}

// checkLists asks the local chains whether they take the signatures that their lists say.
func (w *readmeWalk) checkLists() {
	w.t.Helper()
	providers := filepath.Join(w.t.TempDir(), "rpc.json")
	text := encode(w.t, map[string]any{
		"eip155:31337": []any{w.value("CHAIN_31337_RPC_URL")}, "eip155:31338": []any{w.value("CHAIN_31338_RPC_URL")},
	})
	if err := os.WriteFile(providers, text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	settings := "CORE_DATABASE_URL=\"$DATABASE_URL\" CORE_RPC_FILE='" + providers + "' "
	chains := w.run(settings + "go run ./core chains check deploy/chains/lists/chains.json")
	tokens := w.run(settings + "go run ./core tokens check deploy/chains/lists/tokens.json")
	if strings.Count(chains, "permit2,erc3009") != 2 || strings.Count(tokens, euro) != 2 {
		w.t.Errorf("the local chains:\n%stheir tokens:\n%s", chains, tokens)
	}
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

func (w *readmeWalk) shell(command string) (string, error) {
	shell := exec.CommandContext(w.t.Context(), "sh", "-c", w.commands[1]+"\n"+command)
	shell.Dir, shell.Env = w.root, w.env
	var complaint strings.Builder
	shell.Stderr = &complaint
	out, err := shell.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, complaint.String())
	}
	return string(out), err
}

// await reads events until each of the intents has had a status.
func (w *readmeWalk) await(want map[string]string) {
	w.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		missing := false
		for id, status := range want {
			missing = missing || !w.seen[id+" transfer."+status]
		}
		if !missing {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("no event that %v; events: %v", want, w.seen)
		}
		command := w.commands[10]
		if w.next != "" {
			command = strings.Replace(command, "wait=25", "wait=25&after="+w.next, 1)
		}
		page := decoded[intents.EventPage](w.t, w.run(command))
		for _, e := range page.Events {
			w.seen[e.Transfer.ID+" "+string(e.Type)] = true
		}
		w.next = page.Next
	}
}

// lifecycles is what js/lifecycle.mjs prints: the statuses of each intent, then the transactions that were sent for it.
const lifecycles = `transfer: created submitted confirmed, send carries
swap: created submitted confirmed filled, open carries
quoted swap: created submitted confirmed filled, open carries
bridge after a reset: created submitted confirmed filled, open carries
sped-up transfer: created submitted confirmed, send replaced, send carries
sped-up bridge: created submitted confirmed filled, open replaced, open carries
replaced transfer: created submitted failed TX_REPLACED, send replaced
replaced swap: created submitted failed TX_REPLACED, open replaced
refunded bridge: created submitted confirmed refunded, open carries
cancelled swap: created cancelled
unsent bridge: created expired
batch in turn: confirmed confirmed confirmed filled
batch at once: confirmed confirmed confirmed filled
signed: confirmed filled filled filled cancelled expired
`

// startLifecycles starts js/lifecycle.mjs beside the walk, which takes intents of every kind to their ends with viem and an account of its
// own. It mostly waits for an order to expire, which takes more than a minute; the function returned waits for its end.
func (w *readmeWalk) startLifecycles() (end func(t *testing.T)) {
	w.t.Helper()
	if _, err := nodeModules(); err != nil {
		return func(t *testing.T) { t.Helper(); system.Skip(t, err.Error()) }
	}
	project := newNodeProject(w.t)
	project.installClient(w.t)
	chain := func(id uint64) map[string]any {
		return map[string]any{"id": id, "url": w.value(fmt.Sprintf("CHAIN_%d_RPC_URL", id)), "token": localUSDC, "tether": tether, "euro": euro}
	}
	input := encode(w.t, map[string]any{"gateway": w.value("GATEWAY_URL"), "chains": []any{chain(31337), chain(31338)}})
	var said string
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		said, err = project.command(w.t, input, "node", "lifecycle.mjs")
	}()
	w.t.Cleanup(func() { <-ended }) // before the directory is removed
	return func(t *testing.T) {
		t.Helper()
		<-ended
		if diff := cmp.Diff(lifecycles, said); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
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
