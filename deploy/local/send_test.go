package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/freeport"
)

// A node that does not answer is named, with what to do.
func TestSender_DeadNode(t *testing.T) {
	t.Parallel()
	dead := "http://" + freeport.Address(t)
	for _, test := range []struct {
		env  map[string]string
		want []string
	}{
		{map[string]string{"CHAIN_31337_RPC_URL": dead}, []string{"eip155:31337 at " + dead, "does not answer", "still being built"}},
		{map[string]string{"CHAIN_31337_RPC_URL": dead, "CHAINS_PID": "7"}, []string{"does not answer", "starts it again"}},
		{nil, []string{"eip155:31337 is no local chain"}},
	} {
		_, err := (&sender{env: test.env, http: http.DefaultClient}).node(t.Context(), 31337)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %v", want, err)
			}
		}
	}
}

// A gateway that does not answer is probably that of a stack that was stopped.
func TestSender_DeadGateway(t *testing.T) {
	t.Parallel()
	s, err := newSender(map[string]string{"GATEWAY_URL": "http://" + freeport.Address(t), "TEST_KEY": "sk_test_x"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for name, send := range map[string]func(context.Context, string) error{"send": s.send, "refund": s.refund} {
		const want = "read the intent an-id: the gateway does not answer, so the stack is probably not running any more"
		if err := send(t.Context(), "an-id"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadEnv(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if _, err := readEnv(data); err == nil || !strings.Contains(err.Error(), "no stack is running") {
		t.Errorf("without a stack: %v", err)
	}
	env := stack.Env{GatewayURL: "http://127.0.0.1:8080", DatabaseURL: "postgres://a@b/c?x=1&y='2'"}
	if err := os.WriteFile(filepath.Join(data, envName), []byte(env.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readEnv(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"GATEWAY_URL": env.GatewayURL, "DATABASE_URL": env.DatabaseURL, "TEST_KEY": ""} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Flags are read before and after the id.
func TestParseMixed(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"send"}, {"send", "a", "b"}, {"send", "a", "--nonsense"}, {"env", "a"}} {
		if err := runCommand(args); err == nil {
			t.Errorf("%v were taken", args)
		}
	}
	data := t.TempDir()
	for _, args := range [][]string{{"send", "a", "--refund", "--data", data}, {"send", "--data", data, "a"}, {"env", "--data", data}} {
		if err := runCommand(args); err == nil || !strings.Contains(err.Error(), "no stack is running") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
