package anvil_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"intents.internal/loadtest/anvil"
)

// emitter is the code of a contract that emits an event with the first word of its call data as topic and the rest as data:
// CALLDATACOPY(0, 32, CALLDATASIZE-32), LOG1(0, CALLDATASIZE-32, CALLDATALOAD(0)).
const emitter = "0x60203603806020600037600035906000a100"

// The script of deploy/screening.md writes what an oracle has added and not removed since, in the order of its events.
func TestOracleScript(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../deploy/screening.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(page), "```sh\n#!/bin/sh -e\n# /etc/cron.daily/intents-oracle")
	script, _, closed := strings.Cut(script, "```")
	if !found || !closed {
		t.Fatal("the page has no script")
	}
	dir, bin := t.TempDir(), t.TempDir()
	const oracle = "0x40C57923924B5c5c5455c48D93317139ADDaC8fb"
	for old, with := range map[string]string{"cd /etc/intents/screening": "cd " + dir, "first=0xdb101c": "first=0x0"} {
		if strings.Count(script, old) != 1 {
			t.Fatalf("the script has not %q once", old)
		}
		script = strings.Replace(script, old, with, 1)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/core", "intents.internal/core").CombinedOutput(); err != nil {
		t.Fatalf("build core: %v\n%s", err, out)
	}
	node := anvil.Start(t, anvil.Config{ChainID: chainID})
	node.Call(t, nil, "anvil_setCode", oracle, emitter)
	run := func() (code int, says string) {
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", "#"+script)
		cmd.Env, cmd.Stdout, cmd.Stderr = []string{"RPC=" + node.URL, "PATH=" + bin + ":" + os.Getenv("PATH")}, &out, &out
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode(), out.String()
	}
	const added, removed = "0x2596d7dd6966c5673f9c06ddb0564c4f0e6d8d206ea075b83ad9ddd71a4fb927", "0x32aab684eee99db715515d1a9987a8fe33bb6341b0e35e60db7eab48a08f9a3a"
	emit := func(topic string, addresses ...int) {
		t.Helper()
		to := common.HexToAddress(oracle)
		data := topic + fmt.Sprintf("%064x%064x", 32, len(addresses))
		for _, a := range addresses {
			data += fmt.Sprintf("%064x", a)
		}
		if r := node.Execute(t, anvil.Transaction{From: node.Accounts[0], To: &to, Data: common.FromHex(data)}); len(r.Logs) != 1 || r.Logs[0].Topics[0] != common.HexToHash(topic) {
			t.Fatalf("the oracle emits %+v", r.Logs)
		}
	}
	list := func() string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "oracle.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	lines := func(addresses ...int) (text string) {
		for _, a := range addresses {
			text += fmt.Sprintf("0x%040x\n", a)
		}
		return text
	}
	emit(added, 1, 2, 3)
	emit(added, 4)
	emit(removed, 2, 3, 4)
	emit(added, 3)
	emit("0x"+strings.Repeat("ab", 32), 5) // another event
	if code, says := run(); code != 0 || says != "" {
		t.Fatalf("exit %d: %s", code, says)
	}
	if diff := cmp.Diff(lines(1, 3), list()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	t.Log("a list without an address, and a node that answers with an error, leave the file as it was")
	emit(removed, 1, 3)
	if code, says := run(); code == 0 || !strings.Contains(says, "has no entry") || list() != lines(1, 3) {
		t.Errorf("nothing is left: exit %d: %s\n%s", code, says, list())
	}
	emit(added, 6)
	script = strings.Replace(script, "eth_getLogs", "eth_getNothing", 1)
	if code, says := run(); code == 0 || list() != lines(1, 3) {
		t.Errorf("an error: exit %d: %s\n%s", code, says, list())
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".new*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
